#include "gridscope/model/packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "gridscope/core/checked.hpp"
#include "gridscope/model/scheme_detection.hpp"
#include "gridscope/model/weight_shape.hpp"

// A header tells shapes, not codes. Packed words and the scale grid together leave few pairs of
// bits and group size; the configuration's pair is tried first, then the usual ones.

namespace gridscope::model {
namespace {

using format::TensorInfo;

constexpr std::uint32_t kWordBits = 32;
constexpr std::array<std::uint32_t, 8> kIntegerBits = {4, 8, 2, 3, 5, 6, 7, 1};
constexpr std::array<std::uint64_t, 8> kGroupSizes = {32, 128, 64, 16, 256, 512, 1024, 8};

// Counts are bounded by the file's size times 32; one that would overflow is nonsense: 0.
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return checked_mul(a, b).value_or(0);
}

// The claim's value before the usual ones.
template <typename T>
std::vector<T> candidates(std::optional<T> claimed, std::span<const T> usual) {
  std::vector<T> all;
  if (claimed) all.push_back(*claimed);
  std::ranges::copy_if(usual, std::back_inserter(all), [&](T value) { return value != claimed; });
  return all;
}

// The claimed bits, if a packed format can have as many: a claim is a stranger's number too.
std::optional<std::uint32_t> plausible_bits(const ModuleView& module) {
  if (module.claim == nullptr || module.claim->bits.value_or(0) > 8) return std::nullopt;
  return module.claim->bits;
}

std::vector<std::uint32_t> bit_candidates(const ModuleView& module,
                                          std::span<const std::uint32_t> usual) {
  return candidates(plausible_bits(module), usual);
}

std::vector<std::uint64_t> group_candidates(const ModuleView& module,
                                            std::span<const std::uint64_t> usual) {
  const std::int64_t size = module.claim == nullptr ? 0 : module.claim->group_size.value_or(0);
  if (size <= 0) return {usual.begin(), usual.end()};
  return candidates(std::optional(static_cast<std::uint64_t>(size)), usual);
}

std::uint32_t claimed_bits(const ModuleView& module, std::uint32_t otherwise) {
  return plausible_bits(module).value_or(otherwise);
}

std::string shape_text(const TensorInfo& tensor) {
  return fmt::format("{} [{}]", dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

std::string disagreement(const TensorInfo& weight, const TensorInfo& scale) {
  return fmt::format("weights {} do not fit scales {}", shape_text(weight), shape_text(scale));
}

// Of `columns` weights in a row with `scale_columns` scales: -1 when the row shares one.
std::int64_t group_of(std::uint64_t columns, const TensorInfo* scale) {
  if (scale == nullptr || scale->shape.empty()) return 0;
  const std::uint64_t groups = columns_of(*scale);
  if (groups == 0) return 0;
  if (scale->shape.size() == 1) return groups > 1 ? -1 : 0;  // one for each row
  if (groups > 1) return static_cast<std::int64_t>(ceil_div(columns, groups));
  return rows_of(*scale) > 1 ? -1 : 0;
}

// ---- compressed-tensors pack-quantized ----------------------------------------------------------

// Whether a row of `columns` codes takes `words` words, as a dense bit stream (from version 0.17)
// or with whole codes in every word (before).
bool fits_words(std::uint64_t columns, std::uint32_t bits, std::uint64_t words) {
  const std::uint64_t per_word = kWordBits / bits;
  return words == ceil_div(times(columns, bits), kWordBits) || words == ceil_div(columns, per_word);
}

// A last group that is not full: more columns than the groups before it, fewer than all.
bool fits_ragged(std::uint64_t words, std::uint32_t bits, std::uint64_t groups,
                 std::uint64_t group_size) {
  const std::uint64_t columns = times(words, kWordBits) / bits;
  return columns > times(groups - 1, group_size) && columns < times(groups, group_size);
}

Packing measure_ct_packed(const ModuleView& module) {
  const TensorInfo& packed = *module.find(Suffix::kWeightPacked);
  const TensorInfo* scale = module.find(Suffix::kWeightScale);
  const std::uint64_t words = columns_of(packed);
  const std::uint64_t rows = rows_of(packed);
  const std::uint64_t groups = scale == nullptr ? 1 : columns_of(*scale);
  const std::uint32_t first_bits = claimed_bits(module, 4);
  const std::uint64_t widest = times(words, kWordBits) / first_bits;
  if (groups <= 1) {
    return {.bits = first_bits,
            .group_size = group_of(widest, scale),
            .parameters = times(rows, widest)};
  }
  for (const std::uint32_t bits : bit_candidates(module, kIntegerBits)) {
    for (const std::uint64_t size : group_candidates(module, kGroupSizes)) {
      const std::uint64_t columns = times(groups, size);
      const auto group_size = static_cast<std::int64_t>(size);
      if (fits_words(columns, bits, words)) {
        return {.bits = bits, .group_size = group_size, .parameters = times(rows, columns)};
      }
      if (fits_ragged(words, bits, groups, size) && bits == first_bits) {
        const std::uint64_t ragged = times(words, kWordBits) / bits;
        return {.bits = bits, .group_size = group_size, .parameters = times(rows, ragged)};
      }
    }
  }
  return {.bits = first_bits,
          .group_size = 0,
          .parameters = times(rows, widest),
          .fault = disagreement(packed, *scale)};
}

// ---- GPTQ, AWQ, Marlin --------------------------------------------------------------------------

// The input width of a GPTQ module and its bits: exact with g_idx, else from words and scales.
Packing measure_gptq(const ModuleView& module) {
  const TensorInfo& words = *module.find(Suffix::kQweight);
  const TensorInfo* scales = module.find(Suffix::kScales);
  const TensorInfo* index = module.find(Suffix::kGroupIndex);
  const std::uint32_t word_bits = dtype_info(words.dtype).block_bits;
  const std::uint64_t outputs = columns_of(words);
  const std::uint64_t stack = words.shape.size() > 2 ? words.shape.front() : 1;
  const std::uint64_t word_rows = stack == 0 ? 0 : rows_of(words) / stack;
  const std::uint64_t groups =
      scales == nullptr ? 1 : rows_of(*scales) / std::max<std::uint64_t>(stack, 1);
  const auto packing = [&](std::uint32_t bits, std::uint64_t inputs, std::uint64_t size) {
    return Packing{.bits = bits,
                   .group_size = groups <= 1 ? -1 : static_cast<std::int64_t>(size),
                   .parameters = times(stack, times(inputs, outputs))};
  };
  for (const std::uint32_t bits : bit_candidates(module, kIntegerBits)) {
    const std::uint64_t widest = times(word_rows, word_bits) / bits;
    const std::uint64_t inputs = index != nullptr ? columns_of(*index) : widest;
    if (ceil_div(times(inputs, bits), word_bits) != word_rows || groups == 0) continue;
    if (groups == 1) return packing(bits, inputs, 0);
    for (const std::uint64_t size : group_candidates(module, kGroupSizes)) {
      if (ceil_div(inputs, size) == groups) return packing(bits, inputs, size);
    }
  }
  Packing packing_of_claim = packing(claimed_bits(module, 4), 0, 0);
  packing_of_claim.parameters = times(words.elements(), word_bits) / packing_of_claim.bits;
  packing_of_claim.fault = scales != nullptr ? disagreement(words, *scales)
                                             : "weights " + shape_text(words) + " do not fit g_idx";
  return packing_of_claim;
}

Packing measure_awq_gemm(const ModuleView& module) {
  const TensorInfo& words = *module.find(Suffix::kQweight);
  const TensorInfo* scales = module.find(Suffix::kScales);
  const std::uint64_t inputs = rows_of(words);
  if (scales == nullptr || columns_of(*scales) == 0 || rows_of(*scales) == 0) {
    return {.bits = 4, .group_size = 0, .parameters = times(words.elements(), 8)};
  }
  const std::uint64_t outputs = columns_of(*scales);
  const std::uint64_t bits = times(columns_of(words), kWordBits) / outputs;
  const std::uint64_t groups = rows_of(*scales);
  const auto size = static_cast<std::int64_t>(ceil_div(inputs, groups));
  return {.bits = static_cast<std::uint32_t>(bits),
          .group_size = groups == 1 ? -1 : size,
          .parameters = times(inputs, outputs),
          .fault = inputs % groups == 0 ? "" : disagreement(words, *scales)};
}

// Formats whose scale grid is padded or permuted: only the word count speaks.
Packing measure_words(const ModuleView& module, const TensorInfo& words) {
  const std::uint32_t bits = claimed_bits(module, 4);
  const std::uint64_t word_bits = times(words.bytes, 8);
  const std::int64_t size = module.claim != nullptr ? module.claim->group_size.value_or(0) : 0;
  return {.bits = bits, .group_size = size, .parameters = word_bits / bits};
}

// ---- MLX ----------------------------------------------------------------------------------------

Packing measure_mlx_affine(const ModuleView& module) {
  static constexpr std::array<std::uint32_t, 6> kMlxBits = {4, 8, 6, 5, 3, 2};
  static constexpr std::array<std::uint64_t, 3> kMlxGroups = {64, 32, 128};
  const TensorInfo& weight = *module.find(Suffix::kWeight);
  const TensorInfo* scales = module.find(Suffix::kScales);
  const std::uint64_t row_bits = times(columns_of(weight), kWordBits);
  if (scales == nullptr) return measure_words(module, weight);
  const std::uint64_t groups = columns_of(*scales);
  for (const std::uint32_t bits : bit_candidates(module, kMlxBits)) {
    for (const std::uint64_t size : group_candidates(module, kMlxGroups)) {
      if (row_bits == 0 || times(times(groups, size), bits) != row_bits) continue;
      return {.bits = bits,
              .group_size = static_cast<std::int64_t>(size),
              .parameters = times(rows_of(weight), times(groups, size))};
    }
  }
  Packing unsolved = measure_words(module, weight);
  unsolved.fault = disagreement(weight, *scales);
  return unsolved;
}

// mxfp4, mxfp8 and nvfp4 differ in words per scale: 4, 8 and 2.
Packing measure_mlx_float(const ModuleView& module) {
  const TensorInfo& weight = *module.find(Suffix::kWeight);
  const TensorInfo& scales = *module.find(Suffix::kScales);
  const std::uint64_t groups = columns_of(scales);
  const std::uint64_t words = columns_of(weight);
  const std::uint64_t share = groups == 0 ? 0 : words / groups;
  const std::uint32_t bits = share == 8 ? 8 : 4;
  const std::int64_t size = share == 2 ? 16 : 32;
  const bool known = share == 2 || share == 4 || share == 8;
  const bool fits = known && times(groups, share) == words;
  return {.bits = bits,
          .group_size = size,
          .parameters = times(weight.elements(), kWordBits / bits),
          .fault = fits ? "" : disagreement(weight, scales)};
}

// ---- two codes a byte ---------------------------------------------------------------------------

// E2M1 codes: U8 and I8 hold two, F4 counts its elements itself.
std::uint64_t fp4_codes(const TensorInfo& tensor, std::uint64_t elements) {
  return tensor.dtype == Dtype::kF4 ? elements : times(elements, 2);
}

Packing measure_fp4(const ModuleView& module, const TensorInfo& weight, std::int64_t usual_size) {
  const TensorInfo* scale = module.find(Suffix::kWeightScale);
  if (scale == nullptr) scale = module.find(Suffix::kScale);
  Packing packing{
      .bits = 4, .group_size = usual_size, .parameters = fp4_codes(weight, weight.elements())};
  if (scale == nullptr) return packing;
  const std::uint64_t columns = fp4_codes(weight, columns_of(weight));
  const std::uint64_t groups = columns_of(*scale);
  const bool fits = groups == ceil_div(columns, static_cast<std::uint64_t>(usual_size)) &&
                    rows_of(*scale) == rows_of(weight);
  if (!fits) packing.fault = disagreement(weight, *scale);
  return packing;
}

// Stacks of experts come in either order.
Packing measure_modelopt_nvfp4(const ModuleView& module, const TensorInfo& weight) {
  Packing packing = measure_fp4(module, weight, 16);
  const TensorInfo* scale = module.find(Suffix::kWeightScale);
  if (scale != nullptr && is_input_major_nvfp4(weight.shape, scale->shape)) packing.fault.clear();
  return packing;
}

Packing measure_gpt_oss(const ModuleView& module) {
  const TensorInfo& blocks = *module.find(Suffix::kBlocks);
  const TensorInfo* scales = module.find(Suffix::kScales);
  Packing packing{.bits = 4, .group_size = 32, .parameters = times(blocks.elements(), 2)};
  if (scales == nullptr) return packing;
  const bool fits =
      !blocks.shape.empty() && blocks.shape.size() == scales->shape.size() + 1 &&
      std::ranges::equal(std::span(blocks.shape).first(blocks.shape.size() - 1), scales->shape);
  if (!fits) packing.fault = disagreement(blocks, *scales);
  return packing;
}

Packing measure_bnb4(const ModuleView& module, const TensorInfo& weight) {
  const TensorInfo* absmax = module.find(Suffix::kAbsmax);
  const std::uint64_t codes = times(weight.bytes, 2);
  const std::uint64_t blocks = absmax == nullptr ? 0 : absmax->elements();
  // Block sizes are powers of two; the last block of the tensor may be short.
  const std::uint64_t size =
      blocks == 0 || blocks > codes ? 0 : std::bit_ceil(ceil_div(codes, blocks));
  return {.bits = 4, .group_size = static_cast<std::int64_t>(size), .parameters = codes};
}

// ---- one code an element ------------------------------------------------------------------------

Packing measure_elements(const ModuleView& module, const TensorInfo& weight,
                         const TensorInfo* scale) {
  const std::uint32_t stored = dtype_info(weight.dtype).block_bits;
  const std::uint32_t claimed = claimed_bits(module, stored);
  return {.bits = std::min(stored, claimed),
          .group_size = group_of(columns_of(weight), scale),
          .parameters = weight.elements()};
}

// "Q5_1" -> 5, "IQ2_XXS" -> 2, "MXFP4" -> 4: ggml puts the bits of a code in the name.
Packing measure_gguf_block(const TensorInfo& weight) {
  const std::string_view name = dtype_name(weight.dtype);
  const std::size_t digit = name.find_first_of("0123456789");
  const char c = digit == std::string_view::npos ? '0' : name[digit];
  return {.bits = static_cast<std::uint32_t>(c - '0'),
          .group_size = dtype_info(weight.dtype).block_elements,
          .parameters = weight.elements()};
}

// ---- the others ---------------------------------------------------------------------------------

// Codes of every second weight: two of four are kept.
Packing measure_marlin24(const ModuleView& module, const TensorInfo& packed) {
  Packing packing = measure_words(module, packed);
  packing.parameters = times(packing.parameters, 2);
  return packing;
}

Packing measure_torchao(const ModuleView& module, const TensorInfo& data) {
  const std::uint32_t stored = dtype_info(data.dtype).block_bits;
  const bool packed = data.dtype == Dtype::kU8 || data.dtype == Dtype::kI32;
  const std::uint32_t bits = packed ? 4 : std::min(claimed_bits(module, stored), stored);
  const std::uint32_t per_element = bits == 0 ? 1 : std::max<std::uint32_t>(stored / bits, 1);
  const std::int64_t size = module.claim != nullptr ? module.claim->group_size.value_or(0) : 0;
  return {.bits = bits, .group_size = size, .parameters = times(data.elements(), per_element)};
}

// Tiles of 16 x 16 weights, `columns` 16-bit words each.
Packing measure_exl3(const TensorInfo& trellis) {
  return {.bits = static_cast<std::uint32_t>(columns_of(trellis) / 16),
          .group_size = 0,
          .parameters = times(rows_of(trellis), 256)};
}

const TensorInfo* scale_of(const ModuleView& module) {
  for (const Suffix suffix :
       {Suffix::kWeightScaleInverse, Suffix::kWeightScale, Suffix::kScale, Suffix::kScb}) {
    if (module.has(suffix)) return module.find(suffix);
  }
  return nullptr;
}

}  // namespace

Packing measure_packing(Scheme scheme, const ModuleView& module) {
  const TensorInfo& weight = *module.find(weight_suffix(scheme, module));
  switch (scheme) {
    case Scheme::kPlain:
    case Scheme::kUnknown:
      return {.bits = 0, .group_size = 0, .parameters = weight.elements()};
    case Scheme::kCtPackQuantized:
      return measure_ct_packed(module);
    case Scheme::kGptq:
      return measure_gptq(module);
    case Scheme::kAwqGemm:
      return measure_awq_gemm(module);
    case Scheme::kAwqGemv:
    case Scheme::kAwqGemvFast:
    case Scheme::kMarlin:
      return measure_words(module, weight);
    case Scheme::kCtMarlin24:
      return measure_marlin24(module, weight);
    case Scheme::kCtSparse:
      return {.bits = 0, .group_size = 0, .parameters = times(weight.elements(), 8)};
    case Scheme::kMlxAffine:
      return measure_mlx_affine(module);
    case Scheme::kMlxFp:
      return measure_mlx_float(module);
    case Scheme::kCtNvfp4:
      return measure_fp4(module, weight, 16);
    case Scheme::kModelOptNvfp4:
      return measure_modelopt_nvfp4(module, weight);
    case Scheme::kCtMxfp4:
    case Scheme::kPackedFp4:
      return measure_fp4(module, weight, 32);
    case Scheme::kGptOssMxfp4:
      return measure_gpt_oss(module);
    case Scheme::kModelOptInt4Awq:
      // Two rows share a byte, so the scale's columns divide the weight's own.
      return {.bits = 4,
              .group_size = group_of(columns_of(weight), scale_of(module)),
              .parameters = times(weight.elements(), 2)};
    case Scheme::kBnbNf4:
    case Scheme::kBnbFp4:
      return measure_bnb4(module, weight);
    case Scheme::kGgufBlock:
      return measure_gguf_block(weight);
    case Scheme::kTorchAo:
      return measure_torchao(module, weight);
    case Scheme::kExl3:
      return measure_exl3(weight);
    default:
      return measure_elements(module, weight, scale_of(module));
  }
}

}  // namespace gridscope::model
