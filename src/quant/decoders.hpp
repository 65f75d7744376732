#pragma once

// The decoders, by the family that shares a layout. make_decoder chooses.

#include <memory>
#include <string_view>

#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

using DecoderResult = Result<std::unique_ptr<const WeightDecoder>>;

// plain_decoder.cpp: F64 to BF16, either order.
[[nodiscard]] DecoderResult make_plain_decoder(WeightSpec spec);
// ct_packed_decoder.cpp: compressed-tensors pack-quantized.
[[nodiscard]] DecoderResult make_ct_packed_decoder(WeightSpec spec);
// element_decoder.cpp: one code an element with scales in any grid: compressed-tensors int-, float-
// and naive-quantized, mxfp8; ModelOpt FP8 and INT8; FP8 blocks; bitsandbytes int8.
[[nodiscard]] DecoderResult make_element_decoder(WeightSpec spec);
// fp4_decoder.cpp: E2M1 codes with scales of 16 or 32: compressed-tensors nvfp4 and mxfp4, ModelOpt
// NVFP4, gpt-oss, packed FP4, the floating modes of MLX.
[[nodiscard]] DecoderResult make_fp4_decoder(WeightSpec spec);
// sparse_decoder.cpp: compressed-tensors bitmask formats.
[[nodiscard]] DecoderResult make_sparse_decoder(WeightSpec spec);
// gptq_decoder.cpp: GPTQ v1, v2 and planar.
[[nodiscard]] DecoderResult make_gptq_decoder(WeightSpec spec);
// awq_decoder.cpp: GEMM, GEMV, GEMV_FAST.
[[nodiscard]] DecoderResult make_awq_decoder(WeightSpec spec);
// bnb_decoder.cpp: nf4, fp4.
[[nodiscard]] DecoderResult make_bnb_decoder(WeightSpec spec);
// modelopt_int4_decoder.cpp: ModelOpt INT4-AWQ.
[[nodiscard]] DecoderResult make_modelopt_int4_decoder(WeightSpec spec);
// mlx_decoder.cpp: affine.
[[nodiscard]] DecoderResult make_mlx_decoder(WeightSpec spec);
// gguf_decoder.cpp: the block types.
[[nodiscard]] DecoderResult make_gguf_decoder(WeightSpec spec);
// input_major_decoder.cpp: one matrix of any of them but the plain ones, inputs before outputs.
[[nodiscard]] DecoderResult make_input_major_decoder(WeightSpec spec);

}  // namespace gridscope::quant
