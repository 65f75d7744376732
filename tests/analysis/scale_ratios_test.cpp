#include "gridscope/analysis/scale_ratios.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace gridscope::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ScaleRatios, AreNamedByTheLowerEdgesOfTheirBins) {
  ScaleRatios ratios;
  EXPECT_TRUE(ratios.is_empty());
  EXPECT_THAT(ratios.named(), IsEmpty());
  for (const double ratio : {0.0, 0.0624, 0.0625, 0.99, 1.0, 1.0624, 3.99}) ratios.add(ratio);
  ratios.add_allowed(5);
  EXPECT_FALSE(ratios.is_empty());
  EXPECT_THAT(ratios.named(), ElementsAre(Pair("0", 2), Pair("0.0625", 1), Pair("0.9375", 1),
                                          Pair("1", 5), Pair("1+", 2), Pair("3.9375", 1)));
}

TEST(ScaleRatios, CountWhatIsLargeOrNoNumberTogether) {
  ScaleRatios ratios;
  ratios.add(4.0);
  ratios.add(1e300);
  ratios.add(std::numeric_limits<double>::infinity(), 3);
  ratios.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(ratios.named(), ElementsAre(Pair(">=4", 6)));
}

TEST(ScaleRatios, AddUp) {
  ScaleRatios ratios;
  ratios.add(0.5);
  ratios.add_allowed();
  ScaleRatios more = ratios;
  more.add(2.0, 7);
  ratios.add(more);
  EXPECT_THAT(ratios.named(), ElementsAre(Pair("0.5", 2), Pair("1", 2), Pair("2", 7)));
}

TEST(ScaleRatios, ComeBackFromTheirNames) {
  ScaleRatios ratios;
  for (int i = 0; i < 80; ++i) ratios.add(i / 16.0, static_cast<std::uint64_t>(i) + 1);
  ratios.add_allowed(9);
  EXPECT_EQ(ScaleRatios::from_named(ratios.named()), ratios);
  EXPECT_EQ(ScaleRatios::from_named({}), ScaleRatios());
  for (const char* name : {"1.0", "0.06", ">=5", "", "4", "x"}) {
    EXPECT_EQ(ScaleRatios::from_named({{"1", 1}, {name, 1}}), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace gridscope::analysis
