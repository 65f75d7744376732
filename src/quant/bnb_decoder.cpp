#include "decoders.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {

DecoderResult make_bnb_decoder(WeightSpec spec) {
  return unsupported(spec, "there is no decoder yet");
}

}  // namespace gridscope::quant
