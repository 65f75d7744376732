#pragma once

// Tensors by hand, without a file.

#include <string>
#include <utility>
#include <vector>

#include "gridscope/format/tensor_table.hpp"

namespace gridscope::test {

inline format::TensorInfo tensor(std::string name, Dtype dtype, std::vector<std::uint64_t> shape) {
  format::TensorInfo info{.name = std::move(name), .dtype = dtype, .shape = std::move(shape)};
  info.bytes = format::storage_bytes(dtype, info.elements()).value_or(0);
  return info;
}

}  // namespace gridscope::test
