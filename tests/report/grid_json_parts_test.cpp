#include "grid_json_parts.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "report/sample_grid_reports.hpp"
#include "support/matchers.hpp"

namespace gridscope::report {
namespace {

constexpr ReportKind kKind = {.name = "sample", .remedy = "none"};

// Written, parsed strictly, read.
template <typename T, typename Read>
T there_and_back(const Json& json, Read read) {
  const auto root = parse_json(compact(json));
  EXPECT_THAT(root, test::IsOk());
  std::optional<Error> error;
  T value = read(Members(*root, kKind, error));
  EXPECT_EQ(error, std::nullopt);
  return value;
}

TEST(GridJsonParts, SumsComeBackToTheLastBit) {
  analysis::GridTotals totals = test::full_grid_report().builds[0].totals;
  totals.sums.abs_error = 0.1 + 0.2;
  totals.sums.squared_error = std::numeric_limits<double>::denorm_min();
  totals.sums.squared_source = std::numeric_limits<double>::max();
  const auto read =
      there_and_back<analysis::GridTotals>(grid_totals_json(totals), read_grid_totals);
  EXPECT_EQ(read, totals);
}

TEST(GridJsonParts, AnErrorThatIsNoNumberComesBack) {
  const analysis::PlainTensor tensor{.name = "n",
                                     .source_name = "s",
                                     .values = 2,
                                     .different = 1,
                                     .max_abs_error = std::numeric_limits<double>::infinity(),
                                     .fault = "f"};
  EXPECT_EQ(there_and_back<analysis::PlainTensor>(plain_tensor_json(tensor), read_plain_tensor),
            tensor);
}

TEST(GridJsonParts, CountsByNumberRefuseOtherKeys) {
  Json json = source_grid_json({});
  json["top_levels"] = {{"seven", 1}};
  const auto root = parse_json(compact(json));
  ASSERT_THAT(root, test::IsOk());
  std::optional<Error> error;
  static_cast<void>(read_source_grid(Members(*root, kKind, error)));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gridscope::report
