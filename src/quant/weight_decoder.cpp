#include "gridscope/quant/weight_decoder.hpp"

#include <fmt/format.h>

#include <utility>

#include "decoders.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {

std::string WeightDecoder::remark_on(const Tile& /*tile*/) const {
  return {};
}

Result<bool> WeightDecoder::decode_int4(const Tile& /*tile*/, RowRange /*rows*/,
                                        Int4Rows& /*out*/) const {
  return false;
}

Result<std::unique_ptr<const WeightDecoder>> make_decoder(WeightSpec spec) {
  if (spec.order == WeightSpec::Order::kInputMajor && spec.scheme != Scheme::kPlain) {
    return make_input_major_decoder(std::move(spec));
  }
  switch (spec.scheme) {
    case Scheme::kPlain:
      return make_plain_decoder(std::move(spec));
    case Scheme::kCtPackQuantized:
      return make_ct_packed_decoder(std::move(spec));
    case Scheme::kCtInt:
    case Scheme::kCtFloat:
    case Scheme::kCtMxfp8:
    case Scheme::kModelOptFp8:
    case Scheme::kModelOptInt8:
    case Scheme::kFp8Block:
    case Scheme::kFp8Scaled:
    case Scheme::kBnbInt8:
      return make_element_decoder(std::move(spec));
    case Scheme::kCtNvfp4:
    case Scheme::kCtMxfp4:
    case Scheme::kModelOptNvfp4:
    case Scheme::kPackedFp4:
    case Scheme::kGptOssMxfp4:
    case Scheme::kMlxFp:
      return make_fp4_decoder(std::move(spec));
    case Scheme::kCtSparse:
      return make_sparse_decoder(std::move(spec));
    case Scheme::kGptq:
      return make_gptq_decoder(std::move(spec));
    case Scheme::kAwqGemm:
    case Scheme::kAwqGemv:
    case Scheme::kAwqGemvFast:
      return make_awq_decoder(std::move(spec));
    case Scheme::kBnbNf4:
    case Scheme::kBnbFp4:
      return make_bnb_decoder(std::move(spec));
    case Scheme::kModelOptInt4Awq:
      return make_modelopt_int4_decoder(std::move(spec));
    case Scheme::kMlxAffine:
      return make_mlx_decoder(std::move(spec));
    case Scheme::kGgufBlock:
      return make_gguf_decoder(std::move(spec));
    case Scheme::kCtMarlin24:
    case Scheme::kMarlin:
    case Scheme::kTorchAo:
    case Scheme::kExl3:
    case Scheme::kUnknown:
      break;
  }
  return unsupported(spec,
                     fmt::format("recognised, but not decoded: {}", identify_only(spec.scheme)));
}

}  // namespace gridscope::quant
