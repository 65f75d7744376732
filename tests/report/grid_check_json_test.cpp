#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "gridscope/report/grid_check_report.hpp"
#include "report/json_schema.hpp"
#include "report/sample_grid_reports.hpp"
#include "support/matchers.hpp"

namespace gridscope::report {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GridCheckJson, ReadsBackWhatItWrote) {
  const analysis::GridReport report = test::full_grid_report();
  const auto read = parse_grid_check(grid_check_json(report));
  ASSERT_THAT(read, test::IsOk());
  EXPECT_EQ(*read, report);
}

TEST(GridCheckJson, ReadsBackAnEmptyReport) {
  const analysis::GridReport report{.source = "s"};
  const auto read = parse_grid_check(grid_check_json(report));
  ASSERT_THAT(read, test::IsOk());
  EXPECT_EQ(*read, report);
}

nlohmann::json schema_of(const std::string& name) {
  std::ifstream in(GRIDSCOPE_SOURCE_DIR "/reports/schema/" + name + ".schema.json");
  return nlohmann::json::parse(in);
}

TEST(GridCheckJson, KeepsToItsSchema) {
  const auto schema = schema_of("grid-check-1");
  for (const auto& report : {test::full_grid_report(), test::published_grid_report(),
                             analysis::GridReport{.source = "s"}}) {
    EXPECT_THAT(test::schema_errors(schema, nlohmann::json::parse(grid_check_json(report))),
                IsEmpty());
  }
}

TEST(GridCheckJson, HasTheShapeThatUsersReadFrom) {
  const auto json = nlohmann::json::parse(grid_check_json(test::full_grid_report()));
  EXPECT_EQ(json["schema"], "gridscope.grid-check/1");
  EXPECT_EQ(json["source"]["grid"]["on_grid"], 60);
  EXPECT_EQ(json["source"]["grid"]["group_size"], 32);
  EXPECT_EQ(json["builds"][0]["verdict"], "same_grid");
  EXPECT_EQ(json["builds"][0]["totals"]["level_moves"]["-2"], 1);
  EXPECT_EQ(json["builds"][0]["smoothing"], nullptr);
  EXPECT_EQ(json["builds"][1]["smoothing"]["norms"], 1);
  EXPECT_EQ(json["builds"][1]["tensors"][0]["name"], "layers.0.q_proj");
  EXPECT_EQ(json["builds"][1]["tensors"][0]["weights"], 1000);
  EXPECT_EQ(json["builds"][1]["plain"]["different"][0]["name"], "norm");
  EXPECT_EQ(json["builds"][1]["coverage"]["absent_by_design"][0]["reason"],
            "tied to the embedding");
  EXPECT_EQ(json["reads"]["bytes"], 3456);
  EXPECT_EQ(json["reads"]["tile_reads"], 12);
}

TEST(GridCheckJson, NamesTheMemberThatIsWrong) {
  auto json = nlohmann::json::parse(grid_check_json(test::full_grid_report()));
  json["builds"][1]["totals"]["moved"] = -1;
  const auto read = parse_grid_check(json.dump());
  ASSERT_THAT(read, test::Fails(ErrorCode::kCorrupt, HasSubstr("builds[1].totals.moved")));
  json["builds"][1]["totals"]["moved"] = 1;
  json["builds"][0]["verdict"] = "splendid";
  EXPECT_THAT(parse_grid_check(json.dump()), test::Fails(ErrorCode::kCorrupt, _));
  json["schema"] = "gridscope.inspection/1";
  EXPECT_THAT(parse_grid_check(json.dump()), test::Fails(ErrorCode::kUnsupported, _));
}

TEST(GridCheckJson, ThePlanSaysWhatWouldBeRead) {
  const analysis::GridCost cost{.tensors = 2, .weights = 30, .bytes = 400, .tile_reads = 5};
  const auto json = nlohmann::json::parse(grid_cost_json(cost));
  EXPECT_EQ(json["schema"], "gridscope.grid-check-plan/1");
  EXPECT_EQ(json["bytes"], 400);
  EXPECT_EQ(json["tile_reads"], 5);
  EXPECT_THAT(test::schema_errors(schema_of("grid-check-plan-1"), json), IsEmpty());
}

}  // namespace
}  // namespace gridscope::report
