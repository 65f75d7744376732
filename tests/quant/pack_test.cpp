#include "gridscope/quant/pack.hpp"

#include "packers.hpp"
#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const WeightSpec kLike = {.name = "q_proj", .scheme = Scheme::kCtPackQuantized};

template <typename Edit>
void expect_refused(const std::string& message, Edit edit) {
  LeveledWeight weight = cross_weight();
  edit(weight);
  EXPECT_THAT(pack(weight, kLike),
              test::Fails(ErrorCode::kInvalidArgument,
                          HasSubstr("ct_pack_quantized cannot hold the weight: " + message)));
}

TEST(Pack, RefusesSizesThatDoNotAgree) {
  expect_refused("groups of 24 do not divide 32 columns", [](auto& w) { w.group_size = 24; });
  expect_refused("groups of 0 do not divide 32 columns", [](auto& w) { w.group_size = 0; });
  expect_refused("255 levels, 8 scales and 0 zero points for 8 x 32",
                 [](auto& w) { w.levels.pop_back(); });
  expect_refused("256 levels, 7 scales and 0 zero points for 8 x 32",
                 [](auto& w) { w.scales.pop_back(); });
  expect_refused("256 levels, 8 scales and 3 zero points for 8 x 32",
                 [](auto& w) { w.zeros = {1, 2, 3}; });
  expect_refused("its columns are not all given one of its groups",
                 [](auto& w) { w.group_of_column = {0, 0}; });
  expect_refused("its columns are not all given one of its groups",
                 [](auto& w) { w.group_of_column.assign(32, 1); });
}

TEST(Pack, RefusesNumbersOutOfRange) {
  expect_refused("0 bits", [](auto& w) { w.bits = 0; });
  expect_refused("17 bits", [](auto& w) { w.bits = 17; });
  expect_refused("level 8 in 4 bits", [](auto& w) { w.levels[5] = 8; });
  expect_refused("level -9 in 4 bits", [](auto& w) { w.zeros.assign(8, -9); });
}

TEST(Pack, RefusesSchemesWithoutAPacker) {
  EXPECT_THAT(pack(cross_weight(), {.name = "q_proj", .scheme = Scheme::kMarlin}),
              test::Fails(ErrorCode::kUnsupported, HasSubstr("there is no packer")));
}

TEST(Packers, MultiplyOut) {
  const LeveledWeight weight = {.rows = 1,
                                .columns = 4,
                                .bits = 4,
                                .group_size = 2,
                                .levels = {1, 2, 3, 4},
                                .scales = {10, 100},
                                .zeros = {1, -1},
                                .group_of_column = {1, 0, 0, 1}};
  EXPECT_THAT(values_of(weight), ElementsAre(200, 10, 20, 500));
  EXPECT_THAT(codes_of(weight.levels, 4), ElementsAre(9, 10, 11, 12));
}

TEST(Packers, StoreOnlyWhatIsExact) {
  const auto exact = exact_tensor(kLike, Dtype::kF8E8M0, {2}, std::vector{0.5, 4.0});
  ASSERT_THAT(exact, test::IsOk());
  EXPECT_EQ(exact->data, (std::vector{std::byte{126}, std::byte{129}}));
  EXPECT_THAT(exact_tensor(kLike, Dtype::kF8E8M0, {1}, std::vector{3.0}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("3 is not exact as F8_E8M0")));
  EXPECT_THAT(exact_tensor(kLike, Dtype::kBF16, {1}, std::vector{1.001}),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("1.001 is not exact as BF16")));
}

}  // namespace
}  // namespace gridscope::quant
