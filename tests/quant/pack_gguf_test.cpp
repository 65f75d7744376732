#include <gmock/gmock.h>

#include "quant/cross_vector.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WeightSpec gguf(const std::string& type) {
  return {.name = "blk.0.attn_q", .scheme = Scheme::kGgufBlock, .format = type};
}

std::vector<int> first_bytes(const StoredTensor& tensor, std::size_t count) {
  std::vector<int> bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(std::to_integer<int>(tensor.data[i]));
  return bytes;
}

template <typename Edit>
void expect_refused(const std::string& type, const std::string& message, Edit edit) {
  LeveledWeight weight = cross_weight();
  edit(weight);
  EXPECT_THAT(pack(weight, gguf(type)),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr(message)));
}

TEST(PackGguf, WritesTheBytesOfTheReference) {
  const WeightSpec spec = packed(cross_weight(), gguf("Q4_0"));
  const StoredTensor& blocks = *spec.find(Companion::kCodes);
  EXPECT_EQ(blocks.dtype, Dtype::kQ4_0);
  EXPECT_THAT(blocks.shape, ElementsAre(8, 32));
  EXPECT_EQ(blocks.data.size(), 8 * 18);
  EXPECT_THAT(first_bytes(blocks, 18),
              ElementsAre(0x20, 0x21, 0x00, 0x33, 0x66, 0x99, 0xCC, 0xFF, 0x22, 0x55, 0x88, 0xBB,
                          0xEE, 0x11, 0x44, 0x77, 0xAA, 0xDD));
}

// The minimum is that of code 0: -8 steps, exact in a half float.
TEST(PackGguf, WritesTheMinimumOfQ4_1) {
  const WeightSpec spec = packed(cross_weight(), gguf("Q4_1"));
  EXPECT_THAT(first_bytes(*spec.find(Companion::kCodes), 6),
              ElementsAre(0x20, 0x21, 0x20, 0xAD, 0x00, 0x33));
}

TEST(PackGguf, RefusesWhatTheTypeCannotHold) {
  expect_refused("Q4_0", "4 bits in groups of 16, expected 4 in 32", [](auto& weight) {
    weight.group_size = 16;
    weight.scales.assign(16, 1.0);
  });
  expect_refused("Q5_0", "4 bits in groups of 32, expected 5 in 32", [](auto&) {});
  expect_refused("Q4_0", "zero points", [](auto& weight) { weight.zeros.assign(8, 1); });
  expect_refused("Q4_0", "columns out of order",
                 [](auto& weight) { weight.group_of_column.assign(32, 0); });
  expect_refused("Q4_0", "1.001 is not exact as F16",
                 [](auto& weight) { weight.scales[3] = 1.001; });
  // Seven times a scale of eleven bits.
  expect_refused("Q4_1", "is not exact as F16", [](auto& weight) {
    weight.scales[0] = 2047.0;
    weight.zeros.assign(8, -1);
  });
}

TEST(PackGguf, RefusesTypesWithoutAPacker) {
  for (const char* type : {"Q4_K", "IQ2_XXS", ""}) {
    EXPECT_THAT(pack(cross_weight(), gguf(type)),
                test::Fails(ErrorCode::kUnsupported, HasSubstr("no packer for its type")));
  }
}

}  // namespace
}  // namespace gridscope::quant
