#include "gridscope/model/weight_shape.hpp"

#include <gmock/gmock.h>

namespace gridscope::model {
namespace {

using quant::Companion;
using quant::Scheme;
using quant::StoredTensor;
using ::testing::ElementsAre;

LogicalShape shape_of(Scheme scheme, std::vector<std::uint64_t> codes, std::uint64_t parameters,
                      std::uint32_t bits = 4) {
  quant::WeightSpec spec{.scheme = scheme};
  spec[Companion::kCodes] = StoredTensor{.dtype = Dtype::kI32, .shape = std::move(codes)};
  return logical_shape(spec, parameters, bits);
}

TEST(WeightShape, ReadsRowsOfCodes) {
  const LogicalShape packed = shape_of(Scheme::kCtPackQuantized, {8, 16}, 8 * 128);
  EXPECT_THAT(packed.shape, ElementsAre(8, 128));
  EXPECT_EQ(packed.padding, 7U);
  EXPECT_THAT(shape_of(Scheme::kCtNvfp4, {8, 64}, 8 * 128).shape, ElementsAre(8, 128));
  EXPECT_THAT(shape_of(Scheme::kMlxAffine, {4, 8, 16}, 4 * 8 * 128).shape, ElementsAre(4, 8, 128));
  EXPECT_THAT(shape_of(Scheme::kAwqGemv, {8, 16}, 8 * 128).shape, ElementsAre(8, 128));
  EXPECT_THAT(shape_of(Scheme::kFp8Block, {8, 100}, 800, 8).shape, ElementsAre(8, 100));
  EXPECT_EQ(shape_of(Scheme::kFp8Block, {8, 100}, 800, 8).padding, 0U);
}

TEST(WeightShape, TurnsLayoutsThatRunDownTheInputs) {
  EXPECT_THAT(shape_of(Scheme::kGptq, {16, 24}, 128 * 24).shape, ElementsAre(24, 128));
  EXPECT_THAT(shape_of(Scheme::kGptq, {2, 16, 24}, 2 * 128 * 24).shape, ElementsAre(2, 24, 128));
  EXPECT_THAT(shape_of(Scheme::kAwqGemm, {128, 3}, 128 * 24).shape, ElementsAre(24, 128));
}

TEST(WeightShape, CountsRowsThatShareOne) {
  EXPECT_THAT(shape_of(Scheme::kAwqGemvFast, {6, 128}, 24 * 128).shape, ElementsAre(24, 128));
  EXPECT_THAT(shape_of(Scheme::kModelOptInt4Awq, {12, 128}, 24 * 128).shape, ElementsAre(24, 128));
  EXPECT_THAT(shape_of(Scheme::kGptOssMxfp4, {2, 24, 4, 16}, 2 * 24 * 128).shape,
              ElementsAre(2, 24, 128));
}

TEST(WeightShape, KnowsStacksOfNvfp4WhoseInputsComeFirst) {
  quant::WeightSpec stack{.scheme = Scheme::kModelOptNvfp4};
  stack[Companion::kCodes] = StoredTensor{.dtype = Dtype::kU8, .shape = {2, 32, 96}};
  EXPECT_THAT(logical_shape(stack, 12288, 4).shape, ElementsAre(2, 32, 192));
  stack[Companion::kScale] = StoredTensor{.dtype = Dtype::kF8E4M3, .shape = {2, 4, 96}};
  EXPECT_THAT(logical_shape(stack, 12288, 4).shape, ElementsAre(2, 64, 96));
  stack[Companion::kScale]->shape = {2, 32, 12};
  EXPECT_THAT(logical_shape(stack, 12288, 4).shape, ElementsAre(2, 32, 192));
}

TEST(WeightShape, TellsTheOrderOfNvfp4FromCodesAndScales) {
  const std::vector<std::uint64_t> codes = {2, 32, 96};
  EXPECT_TRUE(is_input_major_nvfp4(codes, std::vector<std::uint64_t>{2, 4, 96}));
  EXPECT_FALSE(is_input_major_nvfp4(codes, std::vector<std::uint64_t>{2, 32, 12}));
  EXPECT_FALSE(is_input_major_nvfp4(codes, std::vector<std::uint64_t>{1, 4, 96}));
  EXPECT_FALSE(is_input_major_nvfp4(codes, std::vector<std::uint64_t>{4, 96}));
  const std::vector<std::uint64_t> ragged = {2, 33, 96};
  EXPECT_FALSE(is_input_major_nvfp4(ragged, std::vector<std::uint64_t>{2, 4, 96}));
  const std::vector<std::uint64_t> empty = {2, 0, 96};
  EXPECT_FALSE(is_input_major_nvfp4(empty, std::vector<std::uint64_t>{2, 0, 96}));
}

TEST(WeightShape, KnowsWhatHeadersDoNotTell) {
  const LogicalShape flat = shape_of(Scheme::kBnbNf4, {64, 1}, 128);
  EXPECT_TRUE(flat.is_flat);
  EXPECT_THAT(flat.shape, ElementsAre(128));
  quant::WeightSpec sparse{.scheme = Scheme::kCtSparse};
  sparse[Companion::kCodes] = StoredTensor{.dtype = Dtype::kBF16, .shape = {100}};
  sparse[Companion::kBitmask] = StoredTensor{.dtype = Dtype::kU8, .shape = {8, 4}};
  EXPECT_THAT(logical_shape(sparse, 0, 0).shape, ElementsAre(8, 32));
  EXPECT_EQ(logical_shape(sparse, 0, 0).padding, 7U);
  sparse[Companion::kCodes] = StoredTensor{.dtype = Dtype::kBF16, .shape = {8, 15}};
  EXPECT_THAT(logical_shape(sparse, 0, 0).shape, ElementsAre(8, 30));
}

TEST(WeightShape, TakesNoHarmFromOddRanks) {
  EXPECT_THAT(shape_of(Scheme::kGptq, {16}, 128).shape, ElementsAre(128));
  EXPECT_THAT(shape_of(Scheme::kAwqGemm, {}, 8).shape, ElementsAre(8));
  EXPECT_THAT(shape_of(Scheme::kCtNvfp4, {}, 2).shape, ElementsAre(2));
  EXPECT_THAT(shape_of(Scheme::kMlxAffine, {0, 4}, 0).shape, ElementsAre(0, 0));
}

}  // namespace
}  // namespace gridscope::model
