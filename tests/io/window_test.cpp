#include "gridscope/io/window.hpp"

#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "support/matchers.hpp"

namespace gridscope::io {
namespace {

using test::bytes_of;
using test::Fails;
using test::IsOk;
using ::testing::ElementsAre;

class WindowTest : public ::testing::Test {
 protected:
  // Puts pieces of a range through three bytes, and returns what was handed on.
  std::vector<std::string> put(const std::vector<std::string>& pieces, std::uint64_t length) {
    std::vector<std::string> used;
    const UseBytes keep = [&](std::span<const std::byte> bytes) -> Status {
      used.push_back(test::to_text(bytes));
      return {};
    };
    Window window(memory_, length, keep);
    for (const std::string& piece : pieces) EXPECT_THAT(window.put(bytes_of(piece)), IsOk());
    return used;
  }

  std::array<std::byte, 3> memory_ = {};
};

TEST_F(WindowTest, HandsOnWhatFillsIt) {
  EXPECT_THAT(put({"ab", "cd", "e", "f"}, 6), ElementsAre("abc", "def"));
}

TEST_F(WindowTest, HandsOnWhatIsLeftAtTheEnd) {
  EXPECT_THAT(put({"abcdefgh"}, 8), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(put({"a"}, 1), ElementsAre("a"));
}

TEST_F(WindowTest, WaitsForTheRest) {
  EXPECT_THAT(put({"abcd", ""}, 6), ElementsAre("abc"));
}

TEST_F(WindowTest, EndsWithTheUsersFailure) {
  int used = 0;
  const UseBytes refuse = [&](std::span<const std::byte>) -> Status {
    ++used;
    return fail(ErrorCode::kCorrupt, "no");
  };
  Window window(memory_, 9, refuse);
  EXPECT_THAT(window.put(bytes_of("abcdefghi")), Fails(ErrorCode::kCorrupt, "no"));
  EXPECT_EQ(used, 1);
}

}  // namespace
}  // namespace gridscope::io
