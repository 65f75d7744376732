#include "quant/cross_vector.hpp"
#include "quant/tiles.hpp"

// What comes back is tested with the decoder; here, what is written and what is refused.

namespace gridscope::quant {
namespace {

using ::testing::HasSubstr;

using Shape = std::vector<std::uint64_t>;

WeightSpec element(Scheme scheme, StoredTensor scale = {.dtype = Dtype::kBF16, .shape = {}}) {
  WeightSpec spec = {.name = "q_proj", .scheme = scheme};
  spec[Companion::kScale] = std::move(scale);
  return spec;
}

LeveledWeight float_weight() {
  LeveledWeight weight = cross_weight();
  weight.bits = 8;
  return weight;
}

TEST(PackElement, WritesIntegersInTheSmallestType) {
  LeveledWeight weight = cross_weight();
  EXPECT_EQ(packed(weight, element(Scheme::kCtInt)).find(Companion::kCodes)->dtype, Dtype::kI8);
  weight.bits = 9;
  EXPECT_EQ(packed(weight, element(Scheme::kCtInt)).find(Companion::kCodes)->dtype, Dtype::kI16);
}

TEST(PackElement, WritesOneScaleForEverythingWhereAsked) {
  LeveledWeight weight = float_weight();
  const WeightSpec like = element(Scheme::kModelOptFp8, {.dtype = Dtype::kF32, .shape = {1}});
  EXPECT_THAT(pack(weight, like),
              test::Fails(ErrorCode::kInvalidArgument,
                          HasSubstr("the scales of row 1 are not those of its block")));
  weight.scales.assign(8, 0.5);
  const WeightSpec spec = packed(weight, like);
  EXPECT_EQ(spec.find(Companion::kScale)->shape, Shape{1});
  EXPECT_EQ(decoded(spec).scales, weight.scales);
}

TEST(PackElement, WritesBlocksWhereClaimed) {
  LeveledWeight weight = float_weight();
  weight.group_size = 16;
  weight.scales = {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6};
  WeightSpec like = element(Scheme::kFp8Block, {.dtype = Dtype::kF32});
  like.block = {3, 16};
  const WeightSpec spec = packed(weight, like);
  EXPECT_EQ(spec.find(Companion::kScale)->shape, (Shape{3, 2}));
  EXPECT_EQ(decoded(spec).scales, weight.scales);
  EXPECT_EQ(decoded(spec).levels, weight.levels);
}

TEST(PackElement, WritesInverseScales) {
  LeveledWeight weight = float_weight();
  weight.scales.assign(8, 0.25);
  WeightSpec like = element(Scheme::kFp8Block, {.dtype = Dtype::kF32, .shape = {1}});
  like.scale_use = WeightSpec::ScaleUse::kDivide;
  const WeightSpec spec = packed(weight, like);
  EXPECT_EQ(spec.find(Companion::kScale)->data, floats_of(Dtype::kF32, {1}, {4.0}).data);
  EXPECT_EQ(decoded(spec).scales, weight.scales);
}

TEST(PackElement, WritesExponents) {
  LeveledWeight weight = float_weight();
  weight.scales.assign(8, 0.5);
  const WeightSpec spec = packed(weight, element(Scheme::kCtMxfp8, {.dtype = Dtype::kU8}));
  EXPECT_EQ(spec.find(Companion::kScale)->dtype, Dtype::kU8);
  EXPECT_EQ(spec.find(Companion::kScale)->data, std::vector(8, std::byte{126}));
  EXPECT_EQ(decoded(spec).scales, weight.scales);
}

TEST(PackElement, WritesBitsandbytes) {
  LeveledWeight weight = cross_weight();
  weight.bits = 8;
  for (double& scale : weight.scales) scale /= 127.0;
  const WeightSpec spec = packed(weight, element(Scheme::kBnbInt8));
  EXPECT_EQ(spec.find(Companion::kScale)->dtype, Dtype::kF32);
  EXPECT_EQ(spec.find(Companion::kScale)->shape, Shape{8});
  EXPECT_EQ(decoded(spec).scales, weight.scales);
  weight.scales[0] = 0.1;
  EXPECT_THAT(pack(weight, element(Scheme::kBnbInt8)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("0.1 is not an F32 / 127")));
}

TEST(PackElement, RefusesWhatTheFormatCannotHold) {
  LeveledWeight weight = float_weight();
  weight.levels[3] = 127;
  EXPECT_THAT(pack(weight, element(Scheme::kCtFloat)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("level 127 of F8_E4M3")));
  EXPECT_THAT(pack(cross_weight(), element(Scheme::kCtFloat)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("4 bits")));
  EXPECT_THAT(pack(asymmetric_cross_weight(), element(Scheme::kModelOptInt8)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("it has zero points")));
}

}  // namespace
}  // namespace gridscope::quant
