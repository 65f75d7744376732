#include <fmt/format.h>

#include <cstring>

#include "gptq_packing.hpp"
#include "gridscope/quant/bitstream.hpp"
#include "packers.hpp"

namespace gridscope::quant {
namespace {

struct Words {
  std::uint32_t bits = 0;
  bool planar = false;
  Dtype dtype = Dtype::kI32;

  [[nodiscard]] std::uint64_t bytes() const { return word_bits_of(dtype) / 8; }
  [[nodiscard]] std::uint64_t count(std::uint64_t codes) const {
    return words_for(codes, bits, dtype);
  }

  [[nodiscard]] std::vector<std::byte> of(std::span<const std::uint8_t> codes) const {
    std::vector<std::byte> stream(count(codes.size()) * bytes());
    if (planar) {
      pack_planar(codes, bits, stream);
    } else {
      pack_bits(codes, bits, stream);
    }
    return stream;
  }
};

StoredTensor pack_codes(const LeveledWeight& weight, const Words& words) {
  const std::vector<std::uint8_t> codes = codes_of(weight.levels, weight.bits);
  const std::uint64_t height = words.count(weight.columns);
  const std::uint64_t bytes = words.bytes();
  StoredTensor tensor = {.dtype = words.dtype, .shape = {height, weight.rows}};
  tensor.data.resize(height * weight.rows * bytes);
  for (std::uint64_t row = 0; row < weight.rows; ++row) {
    const auto stream = words.of(std::span(codes).subspan(row * weight.columns, weight.columns));
    for (std::uint64_t i = 0; i < height; ++i) {
      std::memcpy(&tensor.data[(i * weight.rows + row) * bytes], &stream[i * bytes], bytes);
    }
  }
  return tensor;
}

// As stored: one less in version 1, where 0 becomes the largest code.
std::uint8_t stored_zero(const LeveledWeight& weight, std::uint64_t term, bool minus_one) {
  const int codes = 1 << weight.bits;
  const int zero = codes / 2 + (weight.zeros.empty() ? 0 : weight.zeros[term]);
  return static_cast<std::uint8_t>((zero - (minus_one ? 1 : 0) + codes) % codes);
}

StoredTensor pack_zeros(const LeveledWeight& weight, const Words& words, bool minus_one) {
  const std::uint64_t groups = groups_of(weight);
  StoredTensor tensor = {.dtype = words.dtype, .shape = {groups, words.count(weight.rows)}};
  std::vector<std::uint8_t> zeros(weight.rows);
  for (std::uint64_t g = 0; g < groups; ++g) {
    for (std::uint64_t row = 0; row < weight.rows; ++row) {
      zeros[row] = stored_zero(weight, row * groups + g, minus_one);
    }
    const auto stream = words.of(zeros);
    tensor.data.insert(tensor.data.end(), stream.begin(), stream.end());
  }
  return tensor;
}

StoredTensor pack_group_index(const LeveledWeight& weight) {
  std::vector<std::int32_t> index(weight.columns);
  for (std::uint64_t k = 0; k < weight.columns; ++k) {
    index[k] = static_cast<std::int32_t>(group_of(weight, k));
  }
  return integer_tensor<std::int32_t>(Dtype::kI32, {weight.columns}, index);
}

// 32 bits unless an example says otherwise.
Dtype word_type_of(const WeightSpec& like) {
  const StoredTensor* const codes = like.find(Companion::kCodes);
  return codes == nullptr ? Dtype::kI32 : codes->dtype;
}

}  // namespace

Result<WeightSpec> pack_gptq(const LeveledWeight& weight, const WeightSpec& like) {
  const Words words = {
      .bits = weight.bits, .planar = is_planar(like, weight.bits), .dtype = word_type_of(like)};
  if (weight.bits < 2 || weight.bits > 8) {
    return cannot_hold(like, fmt::format("{} bits", weight.bits));
  }
  if (!fits_words(weight.bits, words.dtype)) {
    return cannot_hold(
        like, fmt::format("{} bits in words of type {}", weight.bits, dtype_name(words.dtype)));
  }
  if (words.planar && (weight.columns % kGptqBlock != 0 || weight.rows % kGptqBlock != 0)) {
    return cannot_hold(like, fmt::format("planes of {} x {} weights", weight.rows, weight.columns));
  }
  if (like.symmetric == true && has_zeros(weight)) {
    return cannot_hold(like, "zero points, but it is symmetric");
  }
  WeightSpec spec = without_tensors(like);
  spec.bits = weight.bits;
  spec.group_size = static_cast<std::int64_t>(weight.group_size);
  spec[Companion::kCodes] = pack_codes(weight, words);
  GRIDSCOPE_TRY(spec[Companion::kScale], scales_by_group(weight, like));
  const bool minus_one = !words.planar && like.gptq_zeros == WeightSpec::GptqZeros::kMinusOne;
  spec[Companion::kZeroPoint] = pack_zeros(weight, words, minus_one);
  spec[Companion::kGroupIndex] = pack_group_index(weight);
  return spec;
}

}  // namespace gridscope::quant
