#include "gridscope/io/memory_source.hpp"

#include <gtest/gtest.h>

#include "support/matchers.hpp"

namespace gridscope::io {
namespace {

using test::Fails;
using test::IsOk;
using test::to_bytes;
using test::to_text;
using ::testing::HasSubstr;

TEST(MemorySource, ReadsByPosition) {
  const auto source = make_memory_source(to_bytes("abcdef"), {.name = "m", .version = "7"});
  EXPECT_EQ(source->size(), 6);
  EXPECT_EQ(source->identity(), (SourceIdentity{.name = "m", .version = "7"}));
  std::vector<std::byte> middle(3);
  ASSERT_THAT(source->read_at(2, middle), IsOk());
  EXPECT_EQ(to_text(middle), "cde");
}

TEST(MemorySource, ReadsNothingAnywhereInside) {
  const auto source = make_memory_source({}, {.name = "empty", .version = ""});
  EXPECT_THAT(source->read_at(0, {}), IsOk());
}

TEST(MemorySource, RefusesToReadBeyondItsEnd) {
  const auto source = make_memory_source(to_bytes("ab"), {.name = "m", .version = ""});
  std::vector<std::byte> bytes(2);
  EXPECT_THAT(source->read_at(1, bytes),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("has 2 bytes")));
}

}  // namespace
}  // namespace gridscope::io
