#pragma once

// Every element type that a tensor table can name: the 22 of safetensors and the block types of
// GGUF, in one table, so that byte counts come from one place. Sources: safetensors crate 0.8
// (`Dtype`), ggml (`ggml_type` and its block structures).

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gridscope {

enum class Dtype : std::uint8_t {
  // safetensors, in its own order (writers sort tensors by it, descending).
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
  // GGUF block types; its plain types are the ones above.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ8_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ3_XXS,
  kIQ1_S,
  kIQ4_NL,
  kIQ3_S,
  kIQ2_S,
  kIQ4_XS,
  kIQ1_M,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
  kQ1_0,
  kQ2_0,
};

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;         // as its format writes it: "BF16", "F8_E4M3", "Q4_0"
  std::uint32_t block_elements;  // elements that are stored together; 1 for plain types
  std::uint32_t block_bits;      // bits of one block
  bool in_safetensors;
};

// All types, in enum order.
[[nodiscard]] std::span<const DtypeInfo> all_dtypes();
[[nodiscard]] const DtypeInfo& dtype_info(Dtype dtype);
[[nodiscard]] inline std::string_view dtype_name(Dtype dtype) {
  return dtype_info(dtype).name;
}

// The type that a safetensors header calls `name` (exact spelling), or empty.
[[nodiscard]] std::optional<Dtype> safetensors_dtype(std::string_view name);

// Bits of one element where that is a whole number per element; GGUF block types give the average
// times block_elements through dtype_info instead.
[[nodiscard]] inline bool is_block_type(Dtype dtype) {
  return dtype_info(dtype).block_elements > 1;
}

// Floating point types of 16 bits and more: the ones that hold plain weights.
[[nodiscard]] bool is_plain_float(Dtype dtype);

}  // namespace gridscope
