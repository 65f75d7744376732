#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gguf_blocks.hpp"
#include "packers.hpp"
#include "spec_checks.hpp"

// Blocks that begin with the scale, and the offset if the type has one, as half floats.

namespace gridscope::quant {
namespace {

constexpr std::array kTypes = {Dtype::kQ4_0, Dtype::kQ4_1, Dtype::kQ5_0, Dtype::kQ5_1,
                               Dtype::kQ8_0};
constexpr std::uint64_t kFloatBytes = 2;

const BlockFormat* find_packed_format(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, dtype_name);
  return found == kTypes.end() ? nullptr : find_block_format(*found);
}

Status check_fit(const LeveledWeight& weight, const WeightSpec& like, const BlockFormat& format) {
  if (weight.bits != format.bits || weight.group_size != format.group_size) {
    return cannot_hold(like, fmt::format("{} bits in groups of {}, expected {} in {}", weight.bits,
                                         weight.group_size, format.bits, format.group_size));
  }
  if (format.values != CodeValues::kOffset && has_zeros(weight)) {
    return cannot_hold(like, "zero points");
  }
  if (!weight.group_of_column.empty()) return cannot_hold(like, "columns out of order");
  return {};
}

// Number `i` of `numbers` into block i, at `offset`.
void copy_floats(const StoredTensor& numbers, std::uint64_t offset, std::uint64_t block_bytes,
                 std::span<std::byte> blocks) {
  for (std::uint64_t i = 0; i * block_bytes < blocks.size(); ++i) {
    std::ranges::copy(std::span(numbers.data).subspan(i * kFloatBytes, kFloatBytes),
                      blocks.begin() + static_cast<std::ptrdiff_t>(i * block_bytes + offset));
  }
}

}  // namespace

Result<WeightSpec> pack_gguf(const LeveledWeight& weight, const WeightSpec& like) {
  const BlockFormat* const format = find_packed_format(like.format);
  if (format == nullptr) return unsupported(like, "there is no packer for its type");
  GRIDSCOPE_CHECK(check_fit(weight, like, *format));
  const std::uint64_t block_bytes = format->bytes();
  const std::vector<std::uint64_t> grid = {weight.rows, groups_of(weight)};
  StoredTensor blocks = {.dtype = format->dtype, .shape = {weight.rows, weight.columns}};
  blocks.data.resize(weight.scales.size() * block_bytes);
  GRIDSCOPE_TRY(const StoredTensor scales, exact_tensor(like, Dtype::kF16, grid, weight.scales));
  copy_floats(scales, 0, block_bytes, blocks.data);
  if (format->values == CodeValues::kOffset) {
    GRIDSCOPE_TRY(const StoredTensor offsets,
                  exact_tensor(like, Dtype::kF16, grid, offsets_of(weight)));
    copy_floats(offsets, kFloatBytes, block_bytes, blocks.data);
  }
  const std::vector<std::uint8_t> codes = codes_of(weight.levels, weight.bits);
  for (std::uint64_t i = 0; i < weight.scales.size(); ++i) {
    store_codes(*format, std::span(codes).subspan(i * weight.group_size, weight.group_size),
                std::span(blocks.data).subspan(i * block_bytes, block_bytes));
  }
  WeightSpec spec = without_tensors(like);
  spec.bits = weight.bits;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  spec[Companion::kCodes] = std::move(blocks);
  return spec;
}

}  // namespace gridscope::quant
