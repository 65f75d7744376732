#include "spec_checks.hpp"

#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using ::testing::HasSubstr;

WeightSpec spec_with_scale(Dtype dtype) {
  WeightSpec spec = {.name = "layers.0.q_proj", .scheme = Scheme::kCtPackQuantized};
  spec[Companion::kScale] = StoredTensor{.dtype = dtype, .shape = {8, 4}};
  return spec;
}

TEST(SpecChecks, ErrorsNameWeightAndScheme) {
  const WeightSpec spec = spec_with_scale(Dtype::kBF16);
  const Status corrupted = corrupt(spec, "its scale is odd", "mend it");
  EXPECT_EQ(corrupted.error(),
            (Error{ErrorCode::kCorrupt,
                   "weight \"layers.0.q_proj\" (ct_pack_quantized): its scale is odd", "mend it"}));
  const Status refused = unsupported(spec, "9 bits");
  EXPECT_THAT(refused, test::Fails(ErrorCode::kUnsupported, HasSubstr("leave the weight out")));
}

TEST(SpecChecks, RequireNamesWhatIsMissing) {
  const WeightSpec spec = spec_with_scale(Dtype::kBF16);
  const auto scale = require(spec, Companion::kScale);
  ASSERT_THAT(scale, test::IsOk());
  EXPECT_EQ((*scale)->shape, (std::vector<std::uint64_t>{8, 4}));
  EXPECT_THAT(require(spec, Companion::kGroupIndex),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its group index is missing")));
}

TEST(SpecChecks, RequireNamesTypeFoundAndExpected) {
  EXPECT_THAT(require(spec_with_scale(Dtype::kF16), Companion::kScale, {Dtype::kF16, Dtype::kBF16}),
              test::IsOk());
  EXPECT_THAT(
      require(spec_with_scale(Dtype::kI8), Companion::kScale, {Dtype::kF16, Dtype::kBF16}),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale is I8 [8, 4], expected F16 or BF16")));
}

TEST(SpecChecks, SeesTensorsAsMatrices) {
  const StoredTensor stacked = {.dtype = Dtype::kI32, .shape = {2, 3, 5}};
  EXPECT_EQ(columns_of(stacked), 5);
  EXPECT_EQ(rows_of(stacked), 6);
  EXPECT_EQ(elements_of(stacked), 30);
  EXPECT_EQ(row_bytes(stacked), 20);
  EXPECT_EQ(row_strip(stacked, 1, 2),
            (Strips{.offset = 20, .length = 40, .stride = 40, .count = 1}));
  EXPECT_EQ(elements_of({.dtype = Dtype::kF32}), 1);
}

}  // namespace
}  // namespace gridscope::quant
