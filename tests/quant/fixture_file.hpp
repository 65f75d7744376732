#pragma once

// Tensors of the files that reference implementations wrote.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gridscope/core/observer.hpp"
#include "gridscope/format/tensor_table.hpp"
#include "gridscope/io/file_source.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {

// Null when there is none, which the test then hears of. The observer must outlive the source.
inline std::unique_ptr<io::ByteSource> open_fixture(const std::string& name, Observer& observer) {
  auto source = io::open_file(std::string(GRIDSCOPE_FIXTURES) + "/quant/" + name, observer);
  EXPECT_THAT(source, test::IsOk());
  return source ? *std::move(source) : nullptr;
}

inline std::vector<std::byte> read_tensor(const io::ByteSource& source,
                                          const format::TensorInfo& info) {
  std::vector<std::byte> bytes(info.bytes);
  EXPECT_THAT(source.read_at(info.offset, bytes), test::IsOk());
  return bytes;
}

}  // namespace gridscope::quant
