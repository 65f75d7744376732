#include "gridscope/analysis/item_comparison.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "analysis/small_models.hpp"

namespace gridscope::analysis {
namespace {

using test::IsOk;
using ::testing::ElementsAre;

class ItemComparisonTest : public ::testing::Test {
 protected:
  static test::SmallModel model(const test::Format& format) {
    test::SmallModel made;
    made.weight("model.layers.0.mlp.up_proj", test::on_grid(16, 64), format)
        .norm("model.norm", std::vector<double>(64, 1.5));
    return made;
  }

  test::SmallCheck check{model(test::plain_format()), {model(test::int4_format())}};
  GridPlan plan = check.plan();
};

TEST(ComputeSlots, LendAsManyMemoriesAsThereAreSlots) {
  constexpr std::size_t kSlots = 2;
  ComputeSlots slots(kSlots);
  std::mutex mutex;
  std::set<const BlockMemory*> lent;
  std::set<const BlockMemory*> seen;
  std::size_t most = 0;
  const auto look = [&](BlockMemory& memory) -> Status {
    {
      const std::scoped_lock lock(mutex);
      EXPECT_TRUE(lent.insert(&memory).second) << "lent twice";
      seen.insert(&memory);
      most = std::max(most, lent.size());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::scoped_lock lock(mutex);
    lent.erase(&memory);
    return {};
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 5; ++n) EXPECT_THAT(slots.with_slot(look), IsOk());
      });
    }
  }
  EXPECT_EQ(most, kSlots);
  EXPECT_EQ(seen.size(), kSlots);
}

TEST(ComputeSlots, PassTheFailureOnAndAreFreeAgain) {
  ComputeSlots slots(1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        slots.with_slot([](BlockMemory&) -> Status { return fail(ErrorCode::kCorrupt, "no"); }),
        test::Fails(ErrorCode::kCorrupt, "no"));
  }
}

TEST_F(ItemComparisonTest, GivesEachKindItsResult) {
  ASSERT_EQ(plan.items.size(), 2U);
  EXPECT_EQ(test::compared<GridTensor>(plan, 0).name, "model.layers.0.mlp.up_proj");
  EXPECT_EQ(test::compared<PlainTensor>(plan, 1).name, "model.norm");
}

TEST_F(ItemComparisonTest, DescribesAQuantizedWeightThatIsCorrupt) {
  const auto result = corrupt_result(
      plan, plan.items[0], {.code = ErrorCode::kCorrupt, .message = "its scale is missing"});
  const auto* tensor = std::get_if<GridTensor>(&result);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->name, "model.layers.0.mlp.up_proj");
  EXPECT_EQ(tensor->source_name, tensor->name);
  EXPECT_THAT(tensor->shape, ElementsAre(16, 64));
  EXPECT_EQ(tensor->role, "mlp");
  EXPECT_EQ(tensor->format, test::compared<GridTensor>(plan, 0).format);
  EXPECT_EQ(tensor->verdict, Verdict::kCorrupt);
  EXPECT_EQ(tensor->fault, "its scale is missing");
  EXPECT_EQ(tensor->totals, GridTotals());
}

TEST_F(ItemComparisonTest, CountsAllOfAPlainTensorThatIsCorruptAsDifferent) {
  const auto result = corrupt_result(plan, plan.items[1],
                                     {.code = ErrorCode::kCorrupt, .message = "it is no tensor"});
  const auto* tensor = std::get_if<PlainTensor>(&result);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->name, "model.norm");
  EXPECT_EQ(tensor->values, 64U);
  EXPECT_EQ(tensor->different, 64U);
  EXPECT_EQ(tensor->fault, "it is no tensor");
}

}  // namespace
}  // namespace gridscope::analysis
