#include "gridscope/core/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "support/matchers.hpp"

namespace gridscope {
namespace {

using test::Fails;
using test::IsOk;

constexpr std::uint8_t kCodes = static_cast<std::uint8_t>(ErrorCode::kInternal) + 1;

TEST(ErrorCode, EveryOneHasItsOwnName) {
  std::set<std::string_view> names;
  for (std::uint8_t i = 0; i < kCodes; ++i) names.insert(error_code_name(ErrorCode{i}));
  EXPECT_EQ(names.size(), kCodes);
  EXPECT_EQ(error_code_name(ErrorCode::kNotFound), "not_found");
  EXPECT_EQ(error_code_name(ErrorCode::kInternal), "internal");
}

TEST(ErrorCode, OnlyWrongUsageExitsWithTwo) {
  for (std::uint8_t i = 0; i < kCodes; ++i) {
    const ErrorCode code{i};
    EXPECT_EQ(exit_code(code), code == ErrorCode::kInvalidArgument ? 2 : 3);
  }
}

TEST(Describe, PutsTheRemedyBehindTheMessage) {
  EXPECT_EQ(describe({ErrorCode::kLimit, "too long"}), "too long");
  EXPECT_EQ(describe({ErrorCode::kLimit, "too long", "cut it"}), "too long; cut it");
}

TEST(WithContext, PrefixesTheMessageAndKeepsTheRest) {
  const Error error = with_context({ErrorCode::kCorrupt, "bad byte", "fetch it again"}, "header");
  EXPECT_EQ(error, (Error{ErrorCode::kCorrupt, "header: bad byte", "fetch it again"}));
}

Result<int> half(int n) {
  if (n % 2 != 0) return fail(ErrorCode::kInvalidArgument, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  GRIDSCOPE_TRY(const int once, half(n));
  GRIDSCOPE_TRY(const int twice, half(once));
  return twice;
}

Status check_even(int n) {
  GRIDSCOPE_CHECK(half(n));
  return {};
}

TEST(Macros, PassValuesOnAndErrorsOut) {
  EXPECT_EQ(quarter(12), 3);
  EXPECT_THAT(quarter(6), Fails(ErrorCode::kInvalidArgument, "odd"));
  EXPECT_THAT(check_even(2), IsOk());
  EXPECT_THAT(check_even(3), Fails(ErrorCode::kInvalidArgument, "odd"));
}

Result<std::unique_ptr<int>> pass_on(Result<std::unique_ptr<int>> from) {
  GRIDSCOPE_TRY(std::unique_ptr<int> owned, std::move(from));
  return owned;
}

TEST(Macros, MoveWhatCannotBeCopied) {
  const auto passed = pass_on(std::make_unique<int>(7));
  ASSERT_THAT(passed, IsOk());
  EXPECT_EQ(**passed, 7);
}

}  // namespace
}  // namespace gridscope
