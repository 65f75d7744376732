// The reports under reports/reference, made anew and compared byte for byte. With
// GRIDSCOPE_UPDATE_REFERENCE=1 in the environment they are written instead.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "gridscope/report/inspection_report.hpp"
#include "report/sample_inspections.hpp"

namespace gridscope::report {
namespace {

using analysis::GroupBy;
using analysis::Inspection;

bool updates() {
  const char* value = std::getenv("GRIDSCOPE_UPDATE_REFERENCE");
  return value != nullptr && std::string_view(value) == "1";
}

void expect_reference(const std::string& name, const std::string& report) {
  const std::filesystem::path path =
      std::filesystem::path(GRIDSCOPE_SOURCE_DIR) / "reports" / "reference" / name;
  if (updates()) {
    ASSERT_TRUE(std::ofstream(path, std::ios::binary) << report) << path;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(report, expected) << "GRIDSCOPE_UPDATE_REFERENCE=1 writes " << path << " anew";
}

void expect_references(const std::string& name, const Inspection& inspection) {
  expect_reference(name + ".txt", inspection_text(inspection));
  expect_reference(name + ".md", inspection_markdown(inspection));
  expect_reference(name + ".json", inspection_json(inspection));
}

TEST(ReferenceReports, OfTheE2BCheckpoint) {
  expect_references("inspection-e2b-w4a16", test::e2b_inspection());
}

TEST(ReferenceReports, OfTheE2BCheckpointByRole) {
  expect_reference("inspection-e2b-w4a16-by-role.txt",
                   inspection_text(test::e2b_inspection({.by = GroupBy::kRole})));
}

TEST(ReferenceReports, OfASmallModelWithFindingsAndTensors) {
  expect_references("inspection-small", test::small_inspection());
}

}  // namespace
}  // namespace gridscope::report
