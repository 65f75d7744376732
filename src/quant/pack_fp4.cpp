#include <fmt/format.h>

#include <algorithm>

#include "gridscope/quant/codec.hpp"
#include "packers.hpp"

// An integer level is a floating code when the type has that number: E2M1 has 0 to 4 and 6.

namespace gridscope::quant {
namespace {

bool is_nvfp4(const LeveledWeight& weight, const WeightSpec& like) {
  return like.scheme == Scheme::kCtNvfp4 || like.scheme == Scheme::kModelOptNvfp4 ||
         (like.scheme == Scheme::kMlxFp && weight.group_size == 16);
}

bool is_mxfp8(const WeightSpec& like) {
  return like.scheme == Scheme::kMlxFp && like.bits == 8;
}

Result<std::vector<std::byte>> pack_codes(const LeveledWeight& weight, const WeightSpec& like) {
  const bool wide = is_mxfp8(like);
  std::vector<std::byte> bytes(weight.levels.size() / (wide ? 1 : 2));
  for (std::uint64_t i = 0; i < weight.levels.size(); ++i) {
    const double level = weight.levels[i];
    const std::uint8_t code = wide ? to_f8_e4m3(level) : to_e2m1(level);
    if ((wide ? f8_e4m3_value(code) : e2m1_value(code)) != level) {
      return cannot_hold(like, fmt::format("there is no code for level {}", weight.levels[i]));
    }
    bytes[wide ? i : i / 2] |= static_cast<std::byte>(wide ? code : code << (i % 2 * 4));
  }
  return bytes;
}

std::vector<std::uint64_t> code_shape(const LeveledWeight& weight, const WeightSpec& like) {
  switch (like.scheme) {
    case Scheme::kGptOssMxfp4:
      return {1, weight.rows, groups_of(weight), 16};
    case Scheme::kMlxFp:
      return {weight.rows, weight.columns / (is_mxfp8(like) ? 4 : 8)};
    default:
      return {weight.rows, weight.columns / 2};
  }
}

Dtype code_type(Scheme scheme) {
  if (scheme == Scheme::kMlxFp) return Dtype::kU32;
  return scheme == Scheme::kPackedFp4 ? Dtype::kI8 : Dtype::kU8;
}

// MLX, gpt-oss and compressed-tensors call the bytes of E8M0 integers, MLX those of E4M3 as well.
Dtype scale_label(Scheme scheme, Dtype type) {
  if (scheme == Scheme::kPackedFp4) return type;
  return type == Dtype::kF8E8M0 || scheme == Scheme::kMlxFp ? Dtype::kU8 : type;
}

Result<StoredTensor> pack_scales(const LeveledWeight& weight, const WeightSpec& like) {
  const Dtype type = is_nvfp4(weight, like) ? Dtype::kF8E4M3 : Dtype::kF8E8M0;
  std::vector<std::uint64_t> shape = {weight.rows, groups_of(weight)};
  if (like.scheme == Scheme::kGptOssMxfp4) shape.insert(shape.begin(), 1);
  GRIDSCOPE_TRY(StoredTensor scales, exact_tensor(like, type, std::move(shape), weight.scales));
  scales.dtype = scale_label(like.scheme, type);
  return scales;
}

}  // namespace

Result<WeightSpec> pack_fp4(const LeveledWeight& weight, const WeightSpec& like) {
  const bool nvfp4 = is_nvfp4(weight, like);
  if (weight.group_size != (nvfp4 ? 16 : 32)) {
    return cannot_hold(like, fmt::format("groups of {}", weight.group_size));
  }
  if (has_zeros(weight)) return cannot_hold(like, "zero points");
  if (!weight.group_of_column.empty()) return cannot_hold(like, "columns out of order");
  WeightSpec spec = without_tensors(like);
  spec.bits = is_mxfp8(like) ? 8 : 4;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  GRIDSCOPE_TRY(std::vector<std::byte> codes, pack_codes(weight, like));
  spec[Companion::kCodes] = StoredTensor{
      .dtype = code_type(like.scheme), .shape = code_shape(weight, like), .data = std::move(codes)};
  GRIDSCOPE_TRY(spec[Companion::kScale], pack_scales(weight, like));
  if (nvfp4 && like.scheme != Scheme::kMlxFp) {
    GRIDSCOPE_TRY(spec[Companion::kGlobalScale],
                  exact_tensor(like, Dtype::kF32, {1}, std::vector{1.0}));
  }
  return spec;
}

}  // namespace gridscope::quant
