#include "gridscope/core/dtype.hpp"

#include <algorithm>
#include <array>

namespace gridscope {
namespace {

constexpr std::array kTypes = std::to_array<DtypeInfo>({
    {Dtype::kBool, "BOOL", 1, 8, true},
    {Dtype::kF4, "F4", 1, 4, true},
    {Dtype::kF6E2M3, "F6_E2M3", 1, 6, true},
    {Dtype::kF6E3M2, "F6_E3M2", 1, 6, true},
    {Dtype::kU8, "U8", 1, 8, true},
    {Dtype::kI8, "I8", 1, 8, true},
    {Dtype::kF8E5M2, "F8_E5M2", 1, 8, true},
    {Dtype::kF8E4M3, "F8_E4M3", 1, 8, true},
    {Dtype::kF8E8M0, "F8_E8M0", 1, 8, true},
    {Dtype::kF8E4M3Fnuz, "F8_E4M3FNUZ", 1, 8, true},
    {Dtype::kF8E5M2Fnuz, "F8_E5M2FNUZ", 1, 8, true},
    {Dtype::kI16, "I16", 1, 16, true},
    {Dtype::kU16, "U16", 1, 16, true},
    {Dtype::kF16, "F16", 1, 16, true},
    {Dtype::kBF16, "BF16", 1, 16, true},
    {Dtype::kI32, "I32", 1, 32, true},
    {Dtype::kU32, "U32", 1, 32, true},
    {Dtype::kF32, "F32", 1, 32, true},
    {Dtype::kC64, "C64", 1, 64, true},
    {Dtype::kF64, "F64", 1, 64, true},
    {Dtype::kI64, "I64", 1, 64, true},
    {Dtype::kU64, "U64", 1, 64, true},
    {Dtype::kQ4_0, "Q4_0", 32, 18 * 8, false},
    {Dtype::kQ4_1, "Q4_1", 32, 20 * 8, false},
    {Dtype::kQ5_0, "Q5_0", 32, 22 * 8, false},
    {Dtype::kQ5_1, "Q5_1", 32, 24 * 8, false},
    {Dtype::kQ8_0, "Q8_0", 32, 34 * 8, false},
    {Dtype::kQ8_1, "Q8_1", 32, 36 * 8, false},
    {Dtype::kQ2_K, "Q2_K", 256, 84 * 8, false},
    {Dtype::kQ3_K, "Q3_K", 256, 110 * 8, false},
    {Dtype::kQ4_K, "Q4_K", 256, 144 * 8, false},
    {Dtype::kQ5_K, "Q5_K", 256, 176 * 8, false},
    {Dtype::kQ6_K, "Q6_K", 256, 210 * 8, false},
    {Dtype::kQ8_K, "Q8_K", 256, 292 * 8, false},
    {Dtype::kIQ2_XXS, "IQ2_XXS", 256, 66 * 8, false},
    {Dtype::kIQ2_XS, "IQ2_XS", 256, 74 * 8, false},
    {Dtype::kIQ3_XXS, "IQ3_XXS", 256, 98 * 8, false},
    {Dtype::kIQ1_S, "IQ1_S", 256, 50 * 8, false},
    {Dtype::kIQ4_NL, "IQ4_NL", 32, 18 * 8, false},
    {Dtype::kIQ3_S, "IQ3_S", 256, 110 * 8, false},
    {Dtype::kIQ2_S, "IQ2_S", 256, 82 * 8, false},
    {Dtype::kIQ4_XS, "IQ4_XS", 256, 136 * 8, false},
    {Dtype::kIQ1_M, "IQ1_M", 256, 56 * 8, false},
    {Dtype::kTQ1_0, "TQ1_0", 256, 54 * 8, false},
    {Dtype::kTQ2_0, "TQ2_0", 256, 66 * 8, false},
    {Dtype::kMXFP4, "MXFP4", 32, 17 * 8, false},
    {Dtype::kNVFP4, "NVFP4", 64, 36 * 8, false},
    {Dtype::kQ1_0, "Q1_0", 128, 18 * 8, false},
    {Dtype::kQ2_0, "Q2_0", 64, 18 * 8, false},
});

static_assert(std::ranges::all_of(kTypes, [](const DtypeInfo& info) {
  return &kTypes[static_cast<std::size_t>(info.dtype)] == &info;
}));

}  // namespace

std::span<const DtypeInfo> all_dtypes() {
  return kTypes;
}

const DtypeInfo& dtype_info(Dtype dtype) {
  return kTypes[static_cast<std::size_t>(dtype)];
}

std::optional<Dtype> safetensors_dtype(std::string_view name) {
  for (const DtypeInfo& info : kTypes) {
    if (info.in_safetensors && info.name == name) return info.dtype;
  }
  return std::nullopt;
}

bool is_plain_float(Dtype dtype) {
  return dtype == Dtype::kF16 || dtype == Dtype::kBF16 || dtype == Dtype::kF32 ||
         dtype == Dtype::kF64;
}

}  // namespace gridscope
