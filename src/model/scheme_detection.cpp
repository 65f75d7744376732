#include "gridscope/model/scheme_detection.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace gridscope::model {
namespace {

using format::TensorInfo;

bool is_f8(Dtype dtype) {
  return dtype == Dtype::kF8E4M3 || dtype == Dtype::kF8E5M2 || dtype == Dtype::kF8E4M3Fnuz ||
         dtype == Dtype::kF8E5M2Fnuz;
}
bool is_word(Dtype dtype) {
  return dtype == Dtype::kI32 || dtype == Dtype::kU32;
}
bool is_byte(Dtype dtype) {
  return dtype == Dtype::kU8 || dtype == Dtype::kI8;
}
// E8M0 exponents, which most files call U8.
bool is_exponent(Dtype dtype) {
  return dtype == Dtype::kU8 || dtype == Dtype::kF8E8M0;
}

bool has_type(const TensorInfo* tensor, bool (*test)(Dtype)) {
  return tensor != nullptr && test(tensor->dtype);
}

bool claims(const ModuleView& module, std::string_view format) {
  return module.claim != nullptr && module.claim->format.find(format) != std::string::npos;
}

Scheme detect_packed(const ModuleView& module) {
  const TensorInfo& packed = *module.find(Suffix::kWeightPacked);
  if (module.has(Suffix::kScalePacked) || module.has(Suffix::kMeta)) return Scheme::kCtMarlin24;
  if (is_word(packed.dtype)) return Scheme::kCtPackQuantized;
  if (packed.dtype != Dtype::kU8 && packed.dtype != Dtype::kF4) return Scheme::kUnknown;
  if (module.has(Suffix::kWeightGlobalScale)) return Scheme::kCtNvfp4;
  const TensorInfo* scale = module.find(Suffix::kWeightScale);
  if (has_type(scale, is_exponent) || (scale == nullptr && claims(module, "mxfp4"))) {
    return Scheme::kCtMxfp4;
  }
  return Scheme::kCtNvfp4;
}

// GPTQ's zero points are words of the type of its codes, those of AWQ's GEMV_FAST are floats.
bool has_zeros_like(const ModuleView& module, const TensorInfo& words) {
  const TensorInfo* zeros = module.find(Suffix::kQzeros);
  return zeros != nullptr && zeros->dtype == words.dtype;
}

// AWQ, GPTQ and Marlin share suffixes; which axis is packed tells them apart. With I inputs, O
// outputs and b bits: GPTQ [I*b/32, O], AWQ [I, O*b/32], both with scales [groups, O]; AWQ's GEMV
// [O, I*b/32] with scales [O, groups, padded]; Marlin [I/16, O*b/2]. A small GEMV module can have
// as many scales in a row as words and so look like GPTQ's: there the configuration is believed.
Scheme detect_qweight(const ModuleView& module) {
  const TensorInfo& words = *module.find(Suffix::kQweight);
  const TensorInfo* scales = module.find(Suffix::kScales);
  if (words.dtype == Dtype::kI16 && !has_zeros_like(module, words)) return Scheme::kAwqGemvFast;
  if (scales == nullptr || scales->shape.size() < 2 || words.shape.size() < 2) {
    const bool awq = module.method == "awq" && !module.has(Suffix::kGroupIndex);
    return awq ? Scheme::kAwqGemm : Scheme::kGptq;
  }
  const std::uint64_t outputs = columns_of(*scales);
  const std::uint64_t columns = columns_of(words);
  const bool says_gemv = module.method == "awq" || claims(module, "gemv");
  if (says_gemv && rows_of(words) == rows_of(*scales)) return Scheme::kAwqGemv;
  if (columns == outputs) return Scheme::kGptq;
  if (columns != 0 && outputs % columns == 0 && module.has(Suffix::kQzeros) &&
      rows_of(words) != rows_of(*scales)) {
    return Scheme::kAwqGemm;
  }
  if (rows_of(words) == rows_of(*scales)) return Scheme::kAwqGemv;
  if (outputs != 0 && columns % outputs == 0 && !module.has(Suffix::kQzeros))
    return Scheme::kMarlin;
  if (columns != 0 && outputs % columns == 0) return Scheme::kAwqGemm;
  return Scheme::kUnknown;
}

Scheme detect_f8(const ModuleView& module) {
  const bool modelopt = module.method.starts_with("modelopt");
  if (module.has(Suffix::kWeightScaleInverse)) return Scheme::kFp8Block;
  const TensorInfo* scale = module.find(Suffix::kWeightScale);
  if (has_type(scale, is_exponent)) return Scheme::kCtMxfp8;
  if (scale != nullptr) return modelopt ? Scheme::kModelOptFp8 : Scheme::kCtFloat;
  return module.has(Suffix::kScale) ? Scheme::kFp8Scaled : Scheme::kPlain;
}

// U8 or F4: two codes a byte, if a scale says so.
Scheme detect_nibbles(const ModuleView& module) {
  const TensorInfo* scale = module.find(Suffix::kWeightScale);
  if (scale == nullptr) {
    return module.has(Suffix::kWeightScale2) ? Scheme::kModelOptNvfp4 : Scheme::kUnknown;
  }
  if (scale->dtype == Dtype::kF8E4M3) return Scheme::kModelOptNvfp4;
  return is_exponent(scale->dtype) ? Scheme::kPackedFp4 : Scheme::kModelOptInt4Awq;
}

Scheme detect_signed(const ModuleView& module) {
  const TensorInfo& weight = *module.find(Suffix::kWeight);
  if (module.has(Suffix::kWeightScale)) {
    const bool modelopt = module.method.starts_with("modelopt");
    return modelopt ? Scheme::kModelOptInt8 : Scheme::kCtInt;
  }
  const bool exponents = has_type(module.find(Suffix::kScale), is_exponent);
  return weight.dtype == Dtype::kI8 && exponents ? Scheme::kPackedFp4 : Scheme::kUnknown;
}

Scheme detect_bnb4(const ModuleView& module) {
  const TensorInfo* state = module.find(Suffix::kQuantState);
  const bool fp4 = (state != nullptr && state->name.ends_with("fp4")) ||
                   (state == nullptr && claims(module, "fp4"));
  return fp4 ? Scheme::kBnbFp4 : Scheme::kBnbNf4;
}

Scheme detect_by_weight(const ModuleView& module) {
  const TensorInfo& weight = *module.find(Suffix::kWeight);
  const bool bnb4 = module.has(Suffix::kAbsmax) || module.has(Suffix::kQuantState) ||
                    module.has(Suffix::kQuantMap);
  if (bnb4) return detect_bnb4(module);
  if (module.has(Suffix::kScb)) return Scheme::kBnbInt8;
  if (is_block_type(weight.dtype)) return Scheme::kGgufBlock;
  if (is_plain_float(weight.dtype)) return Scheme::kPlain;
  if (is_f8(weight.dtype)) return detect_f8(module);
  if (weight.dtype == Dtype::kU32 && weight.shape.size() > 1) {
    const bool exponents = has_type(module.find(Suffix::kScales), is_exponent);
    return exponents ? Scheme::kMlxFp : Scheme::kMlxAffine;
  }
  if (weight.dtype == Dtype::kU8 || weight.dtype == Dtype::kF4) return detect_nibbles(module);
  return detect_signed(module);
}

struct Companion {
  Scheme scheme;
  Suffix suffix;
};

// Suffixes that ordinary parameters bear too, and the schemes that know them.
constexpr std::array kAmbiguous = std::to_array<Companion>({
    {Scheme::kFp8Scaled, Suffix::kScale},
    {Scheme::kPackedFp4, Suffix::kScale},
    {Scheme::kGptq, Suffix::kScales},
    {Scheme::kAwqGemm, Suffix::kScales},
    {Scheme::kAwqGemv, Suffix::kScales},
    {Scheme::kAwqGemvFast, Suffix::kScales},
    {Scheme::kMarlin, Suffix::kScales},
    {Scheme::kGptOssMxfp4, Suffix::kScales},
    {Scheme::kMlxAffine, Suffix::kScales},
    {Scheme::kMlxFp, Suffix::kScales},
    {Scheme::kMlxAffine, Suffix::kBiases},
    {Scheme::kMlxFp, Suffix::kBiases},
    {Scheme::kCtSparse, Suffix::kShape},
    {Scheme::kCtSparse, Suffix::kCompressed},
    {Scheme::kCtSparse, Suffix::kBitmask},
    {Scheme::kCtSparse, Suffix::kRowOffsets},
    {Scheme::kCtMarlin24, Suffix::kMeta},
    {Scheme::kGptOssMxfp4, Suffix::kBlocks},
    {Scheme::kMarlin, Suffix::kMarlinB},
    {Scheme::kMarlin, Suffix::kMarlinScales},
    {Scheme::kMarlin, Suffix::kWorkspace},
    {Scheme::kExl3, Suffix::kTrellis},
    {Scheme::kExl3, Suffix::kTrellisSigns},
    {Scheme::kGptq, Suffix::kGroupIndex},
    {Scheme::kMarlin, Suffix::kGroupIndex},
    {Scheme::kAwqGemm, Suffix::kGroupIndex},
    {Scheme::kTorchAo, Suffix::kQdata},
    {Scheme::kTorchAo, Suffix::kQdataScale},
    {Scheme::kTorchAo, Suffix::kQdataZeroPoint},
});

constexpr std::array kRequired = std::to_array<Companion>({
    {Scheme::kCtPackQuantized, Suffix::kWeightScale},
    {Scheme::kCtPackQuantized, Suffix::kWeightShape},
    {Scheme::kCtNvfp4, Suffix::kWeightScale},
    {Scheme::kCtNvfp4, Suffix::kWeightGlobalScale},
    {Scheme::kCtMxfp4, Suffix::kWeightScale},
    {Scheme::kCtMarlin24, Suffix::kScalePacked},
    {Scheme::kCtMarlin24, Suffix::kMeta},
    {Scheme::kCtSparse, Suffix::kCompressed},
    {Scheme::kCtSparse, Suffix::kShape},
    {Scheme::kModelOptNvfp4, Suffix::kWeightScale},
    {Scheme::kModelOptNvfp4, Suffix::kWeightScale2},
    {Scheme::kBnbNf4, Suffix::kAbsmax},
    {Scheme::kBnbNf4, Suffix::kQuantMap},
    {Scheme::kBnbNf4, Suffix::kQuantState},
    {Scheme::kBnbFp4, Suffix::kAbsmax},
    {Scheme::kBnbFp4, Suffix::kQuantMap},
    {Scheme::kBnbFp4, Suffix::kQuantState},
    {Scheme::kGptq, Suffix::kScales},
    {Scheme::kAwqGemm, Suffix::kScales},
    {Scheme::kAwqGemv, Suffix::kScales},
    {Scheme::kAwqGemvFast, Suffix::kScales},
    {Scheme::kGptOssMxfp4, Suffix::kScales},
    {Scheme::kMlxAffine, Suffix::kScales},
    {Scheme::kMlxAffine, Suffix::kBiases},
});

// Schemes that keep packed codes under the plain name "weight".
constexpr std::array kPackedInWeight = {
    Scheme::kModelOptNvfp4, Scheme::kModelOptInt4Awq, Scheme::kPackedFp4, Scheme::kBnbNf4,
    Scheme::kBnbFp4,        Scheme::kMlxAffine,       Scheme::kMlxFp,     Scheme::kGgufBlock};

struct SuffixStorage {
  Suffix suffix;
  Storage storage;
};
constexpr std::array kStorages = std::to_array<SuffixStorage>({
    {Suffix::kBias, Storage::kBias},
    {Suffix::kWeightPacked, Storage::kPackedWeight},
    {Suffix::kCompressed, Storage::kPackedWeight},
    {Suffix::kBitmask, Storage::kPackedWeight},
    {Suffix::kQweight, Storage::kPackedWeight},
    {Suffix::kMarlinB, Storage::kPackedWeight},
    {Suffix::kBlocks, Storage::kPackedWeight},
    {Suffix::kQdata, Storage::kPackedWeight},
    {Suffix::kTrellis, Storage::kPackedWeight},
    {Suffix::kWeightScale, Storage::kScale},
    {Suffix::kWeightGlobalScale, Storage::kScale},
    {Suffix::kScalePacked, Storage::kScale},
    {Suffix::kWeightScale2, Storage::kScale},
    {Suffix::kWeightScaleInverse, Storage::kScale},
    {Suffix::kScale, Storage::kScale},
    {Suffix::kScb, Storage::kScale},
    {Suffix::kAbsmax, Storage::kScale},
    {Suffix::kNestedAbsmax, Storage::kScale},
    {Suffix::kScales, Storage::kScale},
    {Suffix::kMarlinScales, Storage::kScale},
    {Suffix::kQdataScale, Storage::kScale},
    {Suffix::kWeightZeroPoint, Storage::kZeroPoint},
    {Suffix::kQzeros, Storage::kZeroPoint},
    {Suffix::kBiases, Storage::kZeroPoint},
    {Suffix::kQdataZeroPoint, Storage::kZeroPoint},
    {Suffix::kWeightGroupIndex, Storage::kGroupIndex},
    {Suffix::kGroupIndex, Storage::kGroupIndex},
    {Suffix::kWeightShape, Storage::kShape},
    {Suffix::kShape, Storage::kShape},
});

// Asymmetric codes mean nothing without their zero points.
std::optional<Suffix> required_zero_point(Scheme scheme, const ModuleView& module) {
  const bool asymmetric = module.claim != nullptr && module.claim->symmetric == false;
  switch (scheme) {
    case Scheme::kCtPackQuantized:
    case Scheme::kCtInt:
      return asymmetric ? std::optional(Suffix::kWeightZeroPoint) : std::nullopt;
    case Scheme::kGptq:
    case Scheme::kAwqGemm:
    case Scheme::kAwqGemv:
      return asymmetric ? std::optional(Suffix::kQzeros) : std::nullopt;
    case Scheme::kAwqGemvFast:
      return Suffix::kQzeros;
    default:
      return std::nullopt;
  }
}

}  // namespace

Scheme detect_scheme(const ModuleView& module) {
  if (module.has(Suffix::kWeightPacked)) return detect_packed(module);
  if (module.has(Suffix::kBitmask)) return Scheme::kCtSparse;
  if (module.has(Suffix::kQdata)) return Scheme::kTorchAo;
  if (module.has(Suffix::kTrellis)) return Scheme::kExl3;
  if (has_type(module.find(Suffix::kBlocks), is_byte)) return Scheme::kGptOssMxfp4;
  if (module.has(Suffix::kQweight)) return detect_qweight(module);
  if (module.has(Suffix::kMarlinB) && module.has(Suffix::kMarlinScales)) return Scheme::kMarlin;
  return module.has(Suffix::kWeight) ? detect_by_weight(module) : Scheme::kPlain;
}

Suffix weight_suffix(Scheme scheme, const ModuleView& module) {
  switch (scheme) {
    case Scheme::kCtPackQuantized:
    case Scheme::kCtNvfp4:
    case Scheme::kCtMxfp4:
    case Scheme::kCtMarlin24:
      return Suffix::kWeightPacked;
    case Scheme::kCtSparse:
      return Suffix::kBitmask;
    case Scheme::kTorchAo:
      return Suffix::kQdata;
    case Scheme::kExl3:
      return Suffix::kTrellis;
    case Scheme::kGptOssMxfp4:
      return Suffix::kBlocks;
    case Scheme::kMarlin:
      return module.has(Suffix::kMarlinB) ? Suffix::kMarlinB : Suffix::kQweight;
    case Scheme::kGptq:
    case Scheme::kAwqGemm:
    case Scheme::kAwqGemv:
    case Scheme::kAwqGemvFast:
      return Suffix::kQweight;
    default:
      return module.has(Suffix::kQweight) ? Suffix::kQweight : Suffix::kWeight;
  }
}

Storage storage_of_suffix(Scheme scheme, Suffix suffix) {
  if (suffix == Suffix::kWeight) {
    const bool packed = std::ranges::find(kPackedInWeight, scheme) != kPackedInWeight.end();
    return packed ? Storage::kPackedWeight : Storage::kWeight;
  }
  const auto* found = std::ranges::find(kStorages, suffix, &SuffixStorage::suffix);
  return found == kStorages.end() ? Storage::kBuffer : found->storage;
}

bool belongs_to(Scheme scheme, Suffix suffix) {
  bool ambiguous = false;
  for (const Companion& companion : kAmbiguous) {
    if (companion.suffix != suffix) continue;
    if (companion.scheme == scheme) return true;
    ambiguous = true;
  }
  return !ambiguous;
}

std::vector<Suffix> missing_companions(Scheme scheme, const ModuleView& module) {
  std::vector<Suffix> missing;
  for (const Companion& companion : kRequired) {
    if (companion.scheme == scheme && !module.has(companion.suffix)) {
      missing.push_back(companion.suffix);
    }
  }
  const std::optional<Suffix> zero_point = required_zero_point(scheme, module);
  if (zero_point && !module.has(*zero_point)) missing.push_back(*zero_point);
  return missing;
}

}  // namespace gridscope::model
