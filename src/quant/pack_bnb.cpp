#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "packers.hpp"

// The codes of bitsandbytes are not evenly spaced: here a level is the rank of a code's value among
// the sixteen, 0 in the middle, and a scale the largest magnitude of a block. What decodes is
// table[code] * scale, not level * scale.

namespace gridscope::quant {
namespace {

constexpr std::size_t kCodes = 16;
using Table = std::array<double, kCodes>;

// Quantiles of a normal distribution, as the library rounds them to 32-bit floats.
constexpr Table kNf4 = {-1.0,
                        -0.6961928009986877,
                        -0.5250730514526367,
                        -0.39491748809814453,
                        -0.28444138169288635,
                        -0.18477343022823334,
                        -0.09105003625154495,
                        0.0,
                        0.07958029955625534,
                        0.16093020141124725,
                        0.24611230194568634,
                        0.33791524171829224,
                        0.44070982933044434,
                        0.5626170039176941,
                        0.7229568362236023,
                        1.0};

// Sign and magnitude; the magnitudes are these numbers of twelfths.
constexpr std::array<double, kCodes / 2> kFp4Twelfths = {0.0, 0.0625, 8.0, 12.0,
                                                         4.0, 6.0,    2.0, 3.0};

Table table_of(Scheme scheme) {
  if (scheme == Scheme::kBnbNf4) return kNf4;
  Table table = {};
  for (std::size_t code = 0; code < kCodes / 2; ++code) {
    table[code] = static_cast<double>(static_cast<float>(kFp4Twelfths[code] / 12.0));
    table[code + kCodes / 2] = -table[code];
  }
  return table;
}

// The codes in the order of their values; -0 and what it equals count once.
std::vector<std::uint8_t> codes_by_rank(const Table& table) {
  std::vector<std::uint8_t> codes;
  for (std::uint8_t code = 0; code < kCodes; ++code) {
    const auto same = [&](std::uint8_t other) { return table[other] == table[code]; };
    if (std::ranges::none_of(codes, same)) codes.push_back(code);
  }
  std::ranges::sort(codes, {}, [&](std::uint8_t code) { return table[code]; });
  return codes;
}

Result<StoredTensor> pack_codes(const LeveledWeight& weight, const WeightSpec& like) {
  const std::vector<std::uint8_t> codes = codes_by_rank(table_of(like.scheme));
  const auto middle = static_cast<int>(codes.size() / 2);
  std::vector<std::uint8_t> bytes((weight.levels.size() + 1) / 2);
  for (std::uint64_t i = 0; i < weight.levels.size(); ++i) {
    const int rank = weight.levels[i] + middle;
    if (rank < 0 || rank >= static_cast<int>(codes.size())) {
      return cannot_hold(like, fmt::format("there is no code for level {}", weight.levels[i]));
    }
    const unsigned code = codes[static_cast<std::size_t>(rank)];
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] | code << (i % 2 == 0 ? 4 : 0));
  }
  return integer_tensor<std::uint8_t>(Dtype::kU8, {bytes.size(), 1}, bytes);
}

StoredTensor state_tensor(const LeveledWeight& weight, std::string_view type) {
  const std::string text = fmt::format(
      R"({{"quant_type": "{}", "blocksize": {}, "dtype": "bfloat16", "shape": [{}, {}]}})", type,
      weight.group_size, weight.rows, weight.columns);
  const auto bytes = std::as_bytes(std::span(text));
  return {.dtype = Dtype::kU8, .shape = {text.size()}, .data = {bytes.begin(), bytes.end()}};
}

}  // namespace

Result<WeightSpec> pack_bnb(const LeveledWeight& weight, const WeightSpec& like) {
  if (weight.bits != 4) return cannot_hold(like, fmt::format("{} bits", weight.bits));
  if (has_zeros(weight)) return cannot_hold(like, "zero points");
  if (!weight.group_of_column.empty()) return cannot_hold(like, "columns out of order");
  WeightSpec spec = without_tensors(like);
  spec.bits = weight.bits;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  GRIDSCOPE_TRY(spec[Companion::kCodes], pack_codes(weight, like));
  GRIDSCOPE_TRY(spec[Companion::kScale],
                exact_tensor(like, Dtype::kF32, {weight.scales.size()}, weight.scales));
  GRIDSCOPE_TRY(spec[Companion::kQuantMap],
                exact_tensor(like, Dtype::kF32, {kCodes}, table_of(like.scheme)));
  spec[Companion::kQuantState] =
      state_tensor(weight, like.scheme == Scheme::kBnbFp4 ? "fp4" : "nf4");
  return spec;
}

}  // namespace gridscope::quant
