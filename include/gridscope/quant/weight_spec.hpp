#pragma once

// One quantized weight as its checkpoint stores it: the scheme, what the configuration adds to it,
// and the tensors that belong together. Room quant knows tensors by the part they play here, never
// by name; whoever groups them (room model) fills this in.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/dtype.hpp"
#include "gridscope/quant/scheme.hpp"

namespace gridscope::quant {

// The part that a tensor plays for one weight.
enum class Companion : std::uint8_t {
  kCodes,           // the weight itself, packed or not
  kScale,           // of groups, rows, blocks or the whole; bitsandbytes: absmax, SCB
  kZeroPoint,       // integers (AWQ GEMV_FAST: -scale * zero, as floats)
  kOffset,          // MLX biases: added to scale * code
  kGroupIndex,      // g_idx: the group of each input column
  kShape,           // compressed-tensors weight_shape, shape
  kGlobalScale,     // NVFP4: a divisor for compressed-tensors, a factor for ModelOpt and MLX
  kPreQuantScale,   // ModelOpt: a factor for each input column
  kQuantMap,        // bitsandbytes: the value of each code
  kQuantState,      // bitsandbytes: JSON
  kNestedScale,     // bitsandbytes nested_absmax
  kNestedQuantMap,  // bitsandbytes
  kWeightFormat,    // bitsandbytes int8: 0 means rows
  kBitmask,         // compressed-tensors sparse: which values are stored
  kRowOffsets,      // compressed-tensors sparse
};
inline constexpr std::size_t kCompanionCount = static_cast<std::size_t>(Companion::kRowOffsets) + 1;
[[nodiscard]] std::string_view companion_name(Companion companion);  // "scale", "group index"

// Whether a decoder wants the whole tensor when it is made. All of these are small: at most one
// number for a row or a column.
[[nodiscard]] bool is_read_whole(Companion companion);

struct StoredTensor {
  Dtype dtype = Dtype::kF32;
  std::vector<std::uint64_t> shape = {};
  std::vector<std::byte> data = {};  // only where is_read_whole(); little-endian, as stored
};

struct WeightSpec {
  std::string name = {};  // for messages
  Scheme scheme = Scheme::kPlain;

  // What the configuration claims; 0 and empty where it says nothing. Shapes have the last word.
  std::uint32_t bits = 0;
  std::int64_t group_size = 0;                  // -1: a whole row
  std::array<std::uint64_t, 2> block = {0, 0};  // rows, columns that share an FP8 scale
  std::optional<bool> symmetric = {};
  std::optional<bool> act_order = {};  // GPTQ desc_act
  std::string format = {};             // "pack-quantized", "gptq_v2", "nf4"

  // How what is stored is to be read where nothing in the tensors tells.
  enum class GptqZeros : std::uint8_t { kMinusOne, kAsStored };  // v1, v2
  GptqZeros gptq_zeros = GptqZeros::kMinusOne;
  enum class GptqPacking : std::uint8_t { kBitstream, kPlanar };
  GptqPacking gptq_packing = GptqPacking::kBitstream;
  enum class CtPacking : std::uint8_t { kUnknown, kWholeCodes, kDense };  // before, from 0.17
  CtPacking ct_packing = CtPacking::kUnknown;
  enum class ScaleUse : std::uint8_t { kMultiply, kDivide };
  ScaleUse scale_use = ScaleUse::kMultiply;
  // Of the matrix as stored: [outputs, inputs], or [inputs, outputs] (Conv1D, dequantized gpt-oss,
  // ModelOpt's stacked experts). Codes are packed along the inputs either way.
  enum class Order : std::uint8_t { kOutputMajor, kInputMajor };
  Order order = Order::kOutputMajor;

  std::array<std::optional<StoredTensor>, kCompanionCount> tensors = {};

  [[nodiscard]] const StoredTensor* find(Companion companion) const {
    const auto& tensor = tensors[static_cast<std::size_t>(companion)];
    return tensor ? &*tensor : nullptr;
  }
  std::optional<StoredTensor>& operator[](Companion companion) {
    return tensors[static_cast<std::size_t>(companion)];
  }
};

}  // namespace gridscope::quant
