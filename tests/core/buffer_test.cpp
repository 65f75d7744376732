#include "gridscope/core/buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

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

// Every length up to several lines of a cache, from and to every address within one; nothing around
// them is touched.
TEST(CopyPastCaches, CopiesWhatItIsGiven) {
  constexpr std::size_t kMargin = 64;
  std::vector<std::byte> from(400);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251 + 1);
  for (std::size_t length = 0; length <= 200; ++length) {
    for (std::size_t shift = 0; shift < 64; ++shift) {
      const auto piece = std::span(from).subspan(shift * 7 % 64, length);
      std::vector<std::byte> to(400);
      copy_past_caches(piece, to.data() + kMargin + shift);
      std::vector<std::byte> expected(400);
      std::ranges::copy(piece, expected.begin() + static_cast<std::ptrdiff_t>(kMargin + shift));
      ASSERT_EQ(to, expected) << length << ' ' << shift;
    }
  }
}

}  // namespace
}  // namespace gridscope
