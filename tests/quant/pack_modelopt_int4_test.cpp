#include <gmock/gmock.h>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const WeightSpec kModelOpt = {.name = "q_proj", .scheme = Scheme::kModelOptInt4Awq};

// Rows 0 and 1 share a byte: -8 and -3 first, as signed nibbles.
TEST(PackModelOptInt4, PutsTwoRowsIntoAByte) {
  const WeightSpec spec = packed(cross_weight(), kModelOpt);
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.dtype, Dtype::kU8);
  EXPECT_THAT(codes.shape, ElementsAre(4, 32));
  EXPECT_EQ(codes.data[0], std::byte{0xd8});
  EXPECT_EQ(codes.data[1], std::byte{0x0b});
  EXPECT_THAT(spec.find(Companion::kScale)->shape, ElementsAre(8, 1));
}

TEST(PackModelOptInt4, RefusesWhatTheFormatCannotHold) {
  EXPECT_THAT(pack(asymmetric_cross_weight(), kModelOpt),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("zero points")));
  LeveledWeight weight = cross_weight();
  weight.bits = 5;
  EXPECT_THAT(pack(weight, kModelOpt),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("5 bits")));
  weight = cross_weight();
  weight.group_of_column.assign(32, 0);
  EXPECT_THAT(pack(weight, kModelOpt),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("columns out of order")));
  weight = cross_weight();
  weight.rows = 7;
  weight.levels.resize(7 * 32);
  weight.scales.resize(7);
  EXPECT_THAT(pack(weight, kModelOpt),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("7 rows, odd")));
}

}  // namespace
}  // namespace gridscope::quant
