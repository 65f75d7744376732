#include "gridscope/core/endian.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace gridscope {
namespace {

const std::vector<std::byte> kCounting = {std::byte{0x01}, std::byte{0x02}, std::byte{0x03},
                                          std::byte{0x04}, std::byte{0x05}, std::byte{0x06},
                                          std::byte{0x07}, std::byte{0x08}, std::byte{0xF9}};

TEST(LoadLe, TakesTheLowestByteFirst) {
  EXPECT_EQ(load_le<std::uint8_t>(kCounting), 0x01);
  EXPECT_EQ(load_le<std::uint16_t>(kCounting), 0x0201);
  EXPECT_EQ(load_le<std::uint32_t>(kCounting), 0x04030201);
  EXPECT_EQ(load_le<std::uint64_t>(kCounting), 0x0807060504030201);
}

TEST(LoadLe, ReadsFromAnyAlignment) {
  EXPECT_EQ(load_le<std::uint64_t>(std::span(kCounting).subspan(1)), 0xF908070605040302);
}

TEST(LoadLe, KeepsTheSign) {
  EXPECT_EQ(load_le<std::int8_t>(std::span(kCounting).subspan(8)), -7);
  const std::vector<std::byte> ones(8, std::byte{0xFF});
  EXPECT_EQ(load_le<std::int64_t>(ones), -1);
}

template <typename T>
bool comes_back(T value) {
  std::vector<std::byte> bytes(sizeof(T) + 1);
  const auto at = std::span(bytes).subspan(1);
  store_le<T>(at, value);
  return load_le<T>(at) == value && bytes.front() == std::byte{0};
}

RC_GTEST_PROP(StoreLe, ComesBackThroughLoad,
              (std::uint16_t a, std::int32_t b, std::uint64_t c, std::int64_t d)) {
  RC_ASSERT(comes_back(a));
  RC_ASSERT(comes_back(b));
  RC_ASSERT(comes_back(c));
  RC_ASSERT(comes_back(d));
}

}  // namespace
}  // namespace gridscope
