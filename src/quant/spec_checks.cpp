#include "spec_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "gridscope/core/text.hpp"

namespace gridscope::quant {
namespace {

std::string about(const WeightSpec& spec, std::string_view what) {
  return fmt::format("weight {} ({}): {}", quote(spec.name), scheme_key(spec.scheme), what);
}

}  // namespace

tl::unexpected<Error> corrupt(const WeightSpec& spec, std::string_view what, std::string remedy) {
  return fail(ErrorCode::kCorrupt, about(spec, what), std::move(remedy));
}

tl::unexpected<Error> unsupported(const WeightSpec& spec, std::string_view what) {
  return fail(ErrorCode::kUnsupported, about(spec, what),
              "leave the weight out with --tensor, or convert the build to a supported format");
}

Result<const StoredTensor*> require(const WeightSpec& spec, Companion companion) {
  const StoredTensor* const tensor = spec.find(companion);
  if (tensor == nullptr) {
    return corrupt(spec, fmt::format("its {} is missing", companion_name(companion)),
                   "the build is incomplete: export it again");
  }
  return tensor;
}

Result<const StoredTensor*> require(const WeightSpec& spec, Companion companion,
                                    std::initializer_list<Dtype> dtypes) {
  GRIDSCOPE_TRY(const StoredTensor* const tensor, require(spec, companion));
  if (std::ranges::find(dtypes, tensor->dtype) != dtypes.end()) return tensor;
  std::vector<std::string_view> names;
  for (const Dtype dtype : dtypes) names.push_back(dtype_name(dtype));
  return corrupt(spec, fmt::format("its {} is {}, expected {}", companion_name(companion),
                                   shape_text(*tensor), fmt::join(names, " or ")));
}

std::string shape_text(const StoredTensor& tensor) {
  return fmt::format("{} [{}]", dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

std::uint64_t columns_of(const StoredTensor& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.back();
}

std::uint64_t rows_of(const StoredTensor& tensor) {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  return rows;
}

std::uint64_t elements_of(const StoredTensor& tensor) {
  return rows_of(tensor) * columns_of(tensor);
}

std::uint64_t row_bytes(const StoredTensor& tensor) {
  return columns_of(tensor) * dtype_info(tensor.dtype).block_bits / 8;
}

Strips row_strip(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t bytes = row_bytes(tensor);
  return {.offset = first * bytes, .length = count * bytes, .stride = count * bytes, .count = 1};
}

}  // namespace gridscope::quant
