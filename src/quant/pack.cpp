#include "gridscope/quant/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gridscope/quant/codec.hpp"
#include "packers.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {
namespace {

constexpr std::uint32_t kMostBits = 16;

Status check_sizes(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.group_size == 0 || weight.columns == 0 || weight.columns % weight.group_size != 0) {
    return cannot_hold(like, fmt::format("groups of {} do not divide {} columns", weight.group_size,
                                         weight.columns));
  }
  const std::uint64_t groups = weight.rows * groups_of(weight);
  if (weight.levels.size() != weight.rows * weight.columns || weight.scales.size() != groups ||
      (!weight.zeros.empty() && weight.zeros.size() != groups)) {
    return cannot_hold(like, fmt::format("{} levels, {} scales and {} zero points for {} x {}",
                                         weight.levels.size(), weight.scales.size(),
                                         weight.zeros.size(), weight.rows, weight.columns));
  }
  const auto& index = weight.group_of_column;
  const bool indexed =
      std::ranges::all_of(index, [&](std::uint32_t group) { return group < groups_of(weight); });
  if (!indexed || (!index.empty() && index.size() != weight.columns)) {
    return cannot_hold(like, "its columns are not all given one of its groups");
  }
  return {};
}

Status check_range(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.bits == 0 || weight.bits > kMostBits) {
    return cannot_hold(like, fmt::format("{} bits", weight.bits));
  }
  const int middle = 1 << (weight.bits - 1);
  for (const auto* const numbers : {&weight.levels, &weight.zeros}) {
    const auto odd = std::ranges::find_if(
        *numbers, [&](int level) { return level < -middle || level >= middle; });
    if (odd != numbers->end()) {
      return cannot_hold(like, fmt::format("level {} in {} bits", *odd, weight.bits));
    }
  }
  return {};
}

// The code of an 8-bit float type that has this value.
const double* find_value(std::span<const double> values, double value) {
  const auto found = std::ranges::find(values, value);
  return found == values.end() ? nullptr : &*found;
}

std::array<double, 256> all_values(Dtype dtype) {
  std::array<std::byte, 256> codes = {};
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  std::array<double, 256> values = {};
  load_numbers(dtype, codes, values);
  return values;
}

}  // namespace

tl::unexpected<Error> cannot_hold(const WeightSpec& like, std::string_view what) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{} cannot hold the weight: {}", scheme_key(like.scheme), what));
}

std::uint64_t group_of(const LeveledWeight& weight, std::uint64_t column) {
  return weight.group_of_column.empty() ? column / weight.group_size
                                        : weight.group_of_column[column];
}

std::vector<double> values_of(const LeveledWeight& weight) {
  std::vector<double> values(weight.levels.size());
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    const std::uint64_t term =
        i / weight.columns * groups_of(weight) + group_of(weight, i % weight.columns);
    const int zero = weight.zeros.empty() ? 0 : weight.zeros[term];
    values[i] = (weight.levels[i] - zero) * weight.scales[term];
  }
  return values;
}

bool has_zeros(const LeveledWeight& weight) {
  return std::ranges::any_of(weight.zeros, [](int zero) { return zero != 0; });
}

std::vector<double> offsets_of(const LeveledWeight& weight) {
  std::vector<double> offsets(weight.scales.size());
  const int middle = 1 << (weight.bits - 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const int zero = weight.zeros.empty() ? middle : weight.zeros[i] + middle;
    offsets[i] = -weight.scales[i] * zero;
  }
  return offsets;
}

std::vector<std::uint8_t> codes_of(std::span<const std::int16_t> levels, std::uint32_t bits) {
  std::vector<std::uint8_t> codes(levels.size());
  std::ranges::transform(levels, codes.begin(), [&](int level) {
    return static_cast<std::uint8_t>(level + (1 << (bits - 1)));
  });
  return codes;
}

WeightSpec without_tensors(const WeightSpec& like) {
  WeightSpec spec = like;
  spec.tensors = {};
  return spec;
}

Dtype scale_type_of(const WeightSpec& like) {
  const StoredTensor* const scale = like.find(Companion::kScale);
  return scale == nullptr ? Dtype::kBF16 : scale->dtype;
}

Result<StoredTensor> exact_tensor(const WeightSpec& like, Dtype dtype,
                                  std::vector<std::uint64_t> shape,
                                  std::span<const double> values) {
  StoredTensor tensor = {.dtype = dtype, .shape = std::move(shape)};
  tensor.data.resize(values.size() * dtype_info(dtype).block_bits / 8);
  if (is_plain_float(dtype)) {
    store_numbers(dtype, values, tensor.data);
  } else {
    const std::array<double, 256> stored = all_values(dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double* const found = find_value(stored, values[i]);
      if (found != nullptr) tensor.data[i] = static_cast<std::byte>(found - stored.data());
    }
  }
  std::vector<double> back(values.size());
  load_numbers(dtype, tensor.data, back);
  const auto [kept, asked] = std::ranges::mismatch(back, values);
  if (asked == values.end()) return tensor;
  return cannot_hold(like, fmt::format("{} is not exact as {}", *asked, dtype_name(dtype)));
}

Result<StoredTensor> scales_by_group(const LeveledWeight& weight, const WeightSpec& like) {
  const std::uint64_t groups = groups_of(weight);
  std::vector<double> scales(weight.scales.size());
  for (std::uint64_t i = 0; i < scales.size(); ++i) {
    scales[i % groups * weight.rows + i / groups] = weight.scales[i];
  }
  return exact_tensor(like, scale_type_of(like), {groups, weight.rows}, scales);
}

Result<WeightSpec> pack(const LeveledWeight& weight, const WeightSpec& like) {
  GRIDSCOPE_CHECK(check_sizes(weight, like));
  GRIDSCOPE_CHECK(check_range(weight, like));
  switch (like.scheme) {
    case Scheme::kPlain:
      return pack_plain(weight, like);
    case Scheme::kCtSparse:
      return pack_sparse(weight, like);
    case Scheme::kCtPackQuantized:
      return pack_ct_packed(weight, like);
    case Scheme::kCtInt:
    case Scheme::kCtFloat:
    case Scheme::kCtMxfp8:
    case Scheme::kModelOptFp8:
    case Scheme::kModelOptInt8:
    case Scheme::kFp8Block:
    case Scheme::kFp8Scaled:
    case Scheme::kBnbInt8:
      return pack_element(weight, like);
    case Scheme::kGptq:
      return pack_gptq(weight, like);
    case Scheme::kAwqGemm:
    case Scheme::kAwqGemv:
    case Scheme::kAwqGemvFast:
      return pack_awq(weight, like);
    case Scheme::kMlxAffine:
      return pack_mlx(weight, like);
    case Scheme::kModelOptInt4Awq:
      return pack_modelopt_int4(weight, like);
    case Scheme::kCtNvfp4:
    case Scheme::kCtMxfp4:
    case Scheme::kModelOptNvfp4:
    case Scheme::kPackedFp4:
    case Scheme::kGptOssMxfp4:
    case Scheme::kMlxFp:
      return pack_fp4(weight, like);
    case Scheme::kBnbNf4:
    case Scheme::kBnbFp4:
      return pack_bnb(weight, like);
    case Scheme::kGgufBlock:
      return pack_gguf(weight, like);
    default:
      return unsupported(like, "there is no packer");
  }
}

}  // namespace gridscope::quant
