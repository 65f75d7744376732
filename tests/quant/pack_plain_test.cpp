#include "quant/cross_vector.hpp"

// What comes back is tested with the decoders; here, that what is written is what a writer writes.

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PackPlain, RoundsEveryProductOnce) {
  const WeightSpec spec = packed(cross_weight(), {.name = "q_proj"});
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.dtype, Dtype::kBF16);
  EXPECT_EQ(codes.shape, (std::vector<std::uint64_t>{8, 32}));
  const std::vector<std::uint32_t> words = words_of(codes);
  EXPECT_THAT(std::vector(words.begin(), words.begin() + 4),
              ElementsAre(0xBD4DBDA4, 0x3C24BCA4, 0x3D903D24, 0xBCF6BD76));
}

TEST(PackPlain, PutsInputsFirstWhereAsked) {
  const WeightSpec spec =
      packed(cross_weight(), {.name = "q_proj", .order = WeightSpec::Order::kInputMajor});
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  EXPECT_EQ(codes.shape, (std::vector<std::uint64_t>{32, 8}));
  EXPECT_EQ(load_le<std::uint16_t>(std::span(codes.data).subspan(16)), 0xBD4D);  // row 0, k = 1
}

TEST(PackSparse, KeepsWhatIsNotZero) {
  const LeveledWeight weight = {.rows = 2,
                                .columns = 4,
                                .bits = 4,
                                .group_size = 4,
                                .levels = {0, 1, 0, 2, 0, 0, 0, 3},
                                .scales = {1, 1}};
  const WeightSpec spec = packed(weight, {.name = "q_proj", .scheme = Scheme::kCtSparse});
  EXPECT_EQ(spec.find(Companion::kCodes)->shape, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(spec.find(Companion::kBitmask)->data,
            (std::vector{std::byte{0b1010}, std::byte{0b1000}}));
  EXPECT_THAT(words_of(*spec.find(Companion::kRowOffsets)), ElementsAre(0, 0, 2, 0));
}

TEST(PackSparse, KeepsTwoOfFour) {
  LeveledWeight weight = {
      .rows = 1, .columns = 4, .bits = 4, .group_size = 4, .levels = {0, 0, 0, 2}, .scales = {1}};
  const WeightSpec like = {
      .name = "q_proj", .scheme = Scheme::kCtSparse, .format = "sparse-24-bitmask"};
  const WeightSpec spec = packed(weight, like);
  EXPECT_EQ(spec.find(Companion::kCodes)->shape, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(spec.find(Companion::kBitmask)->data, std::vector{std::byte{0b1001}});
  EXPECT_EQ(spec.find(Companion::kRowOffsets), nullptr);
  weight.levels = {0, 1, 1, 2};
  EXPECT_THAT(pack(weight, like),
              test::Fails(ErrorCode::kInvalidArgument,
                          HasSubstr("more than two of four weights from 0 on are not zero")));
}

}  // namespace
}  // namespace gridscope::quant
