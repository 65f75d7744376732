#include "gridscope/quant/scheme.hpp"

#include <array>
#include <cstddef>

namespace gridscope::quant {
namespace {

struct SchemeInfo {
  std::string_view key;
  std::string_view title;
  std::string_view identify_only;
};

constexpr std::array<SchemeInfo, 31> kSchemes = {{
    {"plain", "plain", ""},
    {"ct_pack_quantized", "int", ""},
    {"ct_nvfp4", "nvfp4", ""},
    {"ct_mxfp4", "mxfp4", ""},
    {"ct_mxfp8", "mxfp8", ""},
    {"ct_int", "int", ""},
    {"ct_float", "fp8", ""},
    {"ct_marlin_24", "marlin-24 int", "its codes are permuted for one GPU kernel"},
    {"ct_sparse", "sparse", ""},
    {"modelopt_fp8", "fp8", ""},
    {"modelopt_nvfp4", "nvfp4", ""},
    {"modelopt_int4_awq", "int", ""},
    {"modelopt_int8", "int", ""},
    {"fp8_block", "fp8", ""},
    {"fp8_scaled", "fp8", ""},
    {"packed_fp4", "mxfp4", ""},
    {"bnb_nf4", "nf4", ""},
    {"bnb_fp4", "fp4", ""},
    {"bnb_int8", "int", ""},
    {"gptq", "gptq int", ""},
    {"awq_gemm", "awq int", ""},
    {"awq_gemv", "awq gemv int", ""},
    {"awq_gemv_fast", "awq gemv-fast int", ""},
    {"marlin", "marlin int", "its codes are permuted for one GPU kernel"},
    {"gpt_oss_mxfp4", "mxfp4", ""},
    {"mlx_affine", "mlx int", ""},
    {"mlx_fp", "mlx fp", ""},
    {"torchao", "torchao int", "the layout of its data depends on the subclass that wrote it"},
    {"gguf_block", "gguf", ""},
    {"exl3", "exl3 int", "its trellis codes need the decoder of their kernel"},
    {"unknown", "unknown", "no known format explains its tensors"},
}};
static_assert(kSchemes.size() == static_cast<std::size_t>(Scheme::kUnknown) + 1);

const SchemeInfo& info(Scheme scheme) {
  return kSchemes.at(static_cast<std::size_t>(scheme));
}

}  // namespace

std::string_view scheme_key(Scheme scheme) {
  return info(scheme).key;
}
std::string_view scheme_title(Scheme scheme) {
  return info(scheme).title;
}
std::string_view identify_only(Scheme scheme) {
  return info(scheme).identify_only;
}

}  // namespace gridscope::quant
