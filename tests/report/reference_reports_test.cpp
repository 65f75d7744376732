// The reports under reports/reference, made anew and compared byte for byte: of checkpoints in
// fixtures, materialised as files of true size without data, and of a small one made by hand. With
// GRIDSCOPE_UPDATE_REFERENCE=1 in the environment they are written instead.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "gridscope/model/checkpoint.hpp"
#include "gridscope/report/inspection_report.hpp"
#include "gridscope/store/disk_repository.hpp"
#include "report/sample_inspections.hpp"
#include "support/sparse_checkpoint.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::report {
namespace {

namespace fs = std::filesystem;
using analysis::GroupBy;
using analysis::Inspection;

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(describe(result.error()));
  return *std::move(result);
}

// Where it lay and what reading took differ from run to run; they are set to fixed values.
Inspection inspect_fixture(const fs::path& name, const analysis::InspectOptions& options = {}) {
  const test::TempDir scratch;
  const fs::path directory =
      test::write_sparse_checkpoint(fs::path(GRIDSCOPE_FIXTURES) / name, scratch.path()).directory;
  NullObserver observer;
  store::StoreContext context;
  context.observer = &observer;
  const store::ModelReference reference{.kind = store::ReferenceKind::kDisk,
                                        .text = name.string(),
                                        .location = directory.string(),
                                        .revision = "",
                                        .path = ""};
  const auto repository = value_of(store::open_disk_repository(reference, context));
  const model::Checkpoint checkpoint = value_of(model::load_checkpoint(*repository, observer));
  Inspection inspection = value_of(analysis::inspect(checkpoint, options));
  inspection.reads = {.requests = 35, .bytes = 444'000, .cache_hits = 0};
  inspection.read_seconds = 0.25;
  return inspection;
}

void expect_reference(const std::string& name, const std::string& report) {
  const fs::path path = fs::path(GRIDSCOPE_SOURCE_DIR) / "reports" / "reference" / name;
  const char* update = std::getenv("GRIDSCOPE_UPDATE_REFERENCE");
  if (update != nullptr && std::string_view(update) == "1") {
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

TEST(ReferenceReports, OfAQuantizedModel) {
  expect_references("inspection-E2B-w4a16", inspect_fixture("gemma-4/E2B-w4a16"));
}

TEST(ReferenceReports, OfAQuantizedModelByRole) {
  expect_reference("inspection-E2B-w4a16-by-role.txt",
                   inspection_text(inspect_fixture("gemma-4/E2B-w4a16", {.by = GroupBy::kRole})));
}

TEST(ReferenceReports, OfAPlainModelByLayer) {
  expect_reference("inspection-E2B-bf16-by-layer.txt",
                   inspection_text(inspect_fixture("gemma-4/E2B-bf16", {.by = GroupBy::kLayer})));
}

TEST(ReferenceReports, OfAShardedModelByFile) {
  expect_reference(
      "inspection-26B-A4B-bf16-by-file.txt",
      inspection_text(inspect_fixture("gemma-4/26B-A4B-bf16", {.by = GroupBy::kFile})));
}

TEST(ReferenceReports, OfASmallModelWithFindingsAndTensors) {
  expect_references("inspection-small", test::small_inspection());
}

}  // namespace
}  // namespace gridscope::report
