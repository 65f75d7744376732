// All encodings of one matrix mean the same weights, and so does the plain source but for its one
// rounding.

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "quant/cross_vector.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

WeightSpec like(Scheme scheme, std::string format = {}) {
  return {
      .name = "q_proj", .scheme = scheme, .bits = 4, .group_size = 32, .format = std::move(format)};
}

std::vector<WeightSpec> symmetric_encodings() {
  WeightSpec second_version = like(Scheme::kGptq);
  second_version.gptq_zeros = WeightSpec::GptqZeros::kAsStored;
  return {like(Scheme::kCtPackQuantized),
          like(Scheme::kCtInt),
          like(Scheme::kGptq),
          second_version,
          like(Scheme::kAwqGemm),
          like(Scheme::kAwqGemv),
          like(Scheme::kMlxAffine),
          like(Scheme::kModelOptInt4Awq),
          like(Scheme::kGgufBlock, "Q4_0")};
}

TEST(CrossFormat, EveryEncodingMeansTheSameWeights) {
  const std::vector<double> expected = weights_of(cross_weight());
  for (const WeightSpec& encoding : symmetric_encodings()) {
    const WeightSpec spec = packed(cross_weight(), encoding);
    const RowBlock block = decoded(spec);
    EXPECT_EQ(block.values, expected) << scheme_key(encoding.scheme);
    EXPECT_EQ(block.levels, cross_weight().levels) << scheme_key(encoding.scheme);
    EXPECT_EQ(block.scales, cross_weight().scales) << scheme_key(encoding.scheme);
  }
}

TEST(CrossFormat, EveryEncodingWithZeroPointsMeansTheSameWeights) {
  const std::vector<double> expected = weights_of(asymmetric_cross_weight());
  WeightSpec second_version = like(Scheme::kGptq);
  second_version.gptq_zeros = WeightSpec::GptqZeros::kAsStored;
  WeightSpec packed_zeros = like(Scheme::kCtPackQuantized);
  packed_zeros.symmetric = false;
  for (const WeightSpec& encoding : {packed_zeros, like(Scheme::kGptq), second_version,
                                     like(Scheme::kAwqGemm), like(Scheme::kAwqGemv)}) {
    const RowBlock block = decoded(packed(asymmetric_cross_weight(), encoding));
    EXPECT_EQ(block.values, expected) << scheme_key(encoding.scheme);
    EXPECT_EQ(block.zeros, asymmetric_cross_weight().zeros) << scheme_key(encoding.scheme);
  }
}

TEST(CrossFormat, ThePlainSourceIsTheSameRoundedOnce) {
  std::vector<double> expected = weights_of(cross_weight());
  for (double& value : expected) value = rounded_to(Dtype::kBF16, value);
  EXPECT_EQ(decoded(packed(cross_weight(), like(Scheme::kPlain))).values, expected);
}

}  // namespace
}  // namespace gridscope::quant
