#include "gridscope/core/buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace gridscope {
namespace {

TEST(Buffer, HoldsWhatIsAskedFor) {
  Buffer buffer;
  for (const std::size_t size : {1UL, 100UL, 3UL << 20U, 5UL, (1UL << 20U) + 1, 9UL << 20U}) {
    const std::span<std::byte> bytes = buffer.get(size);
    ASSERT_EQ(bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::max_align_t), 0U);
    std::ranges::fill(bytes, std::byte{7});
  }
}

TEST(Buffer, KeepsItsMemoryForWhatIsSmaller) {
  Buffer buffer;
  std::byte* const first = buffer.get(4UL << 20U).data();
  *first = std::byte{9};
  EXPECT_EQ(buffer.get(10).data(), first);
  EXPECT_EQ(buffer.get(4UL << 20U).data(), first);
  EXPECT_EQ(*first, std::byte{9});
  Buffer other = std::move(buffer);
  EXPECT_EQ(other.get(1).data(), first);
}

TEST(Buffer, IsEmptyForNothing) {
  EXPECT_TRUE(Buffer().get(0).empty());
}

}  // namespace
}  // namespace gridscope
