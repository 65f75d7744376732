#pragma once

// How the weights of one module are stored.

#include <cstdint>
#include <string_view>

namespace gridscope::quant {

enum class Scheme : std::uint8_t {
  kPlain,  // the weight itself, in a float type
  kCtPackQuantized,
  kCtNvfp4,
  kCtMxfp4,
  kCtMxfp8,
  kCtInt,
  kCtFloat,
  kCtMarlin24,
  kCtSparse,
  kModelOptFp8,
  kModelOptNvfp4,
  kModelOptInt4Awq,
  kModelOptInt8,
  kFp8Block,
  kFp8Scaled,
  kPackedFp4,
  kBnbNf4,
  kBnbFp4,
  kBnbInt8,
  kGptq,
  kAwqGemm,
  kAwqGemv,
  kAwqGemvFast,
  kMarlin,
  kGptOssMxfp4,
  kMlxAffine,
  kMlxFp,
  kTorchAo,
  kGgufBlock,
  kExl3,
  kUnknown,  // integers or bytes that no scheme explains
};
[[nodiscard]] std::string_view scheme_key(Scheme scheme);  // "ct_pack_quantized"

// How a person calls it, the bits left out where they follow: "int", "nvfp4", "awq int".
[[nodiscard]] std::string_view scheme_title(Scheme scheme);

// The reason why weights stored in that way are recognised but not decoded ("its permutation
// depends on the kernel"), or empty when there is a decoder.
[[nodiscard]] std::string_view identify_only(Scheme scheme);

}  // namespace gridscope::quant
