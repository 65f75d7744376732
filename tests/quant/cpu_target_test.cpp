#include "gridscope/quant/cpu_target.hpp"

#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

TEST(CpuTarget, HasAReferenceLast) {
  const auto targets = cpu_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_THAT(targets.back(), AnyOf(Eq("SCALAR"), Eq("EMU128"), Eq("NEON")));
}

TEST(CpuTarget, ListsTheSameWhateverIsForced) {
  const auto targets = cpu_targets();
  for (const std::string& target : targets) {
    EXPECT_THAT(force_cpu_target(target), test::IsOk());
    EXPECT_EQ(cpu_targets(), targets);
  }
  EXPECT_THAT(force_cpu_target(""), test::IsOk());
}

TEST(CpuTarget, RefusesWhatIsNotThere) {
  EXPECT_THAT(force_cpu_target("ABACUS"),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr(cpu_targets().back())));
}

}  // namespace
}  // namespace gridscope::quant
