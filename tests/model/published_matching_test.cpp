// Builds of Gemma 4 of true size matched with their sources, from the headers beside the source
// tree: every weight has its counterpart, or a reason to have none.

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>

#include "gridscope/model/weight_matching.hpp"
#include "gridscope/store/disk_repository.hpp"
#include "model/weight_lists.hpp"
#include "support/sparse_checkpoint.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::model {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

const fs::path kHeaders = fs::path(GRIDSCOPE_SOURCE_DIR) / "../shared/headers/checkpoints";

struct Case {
  const char* source;
  const char* build;
  std::size_t quantized;
  std::size_t plain;
  std::size_t absent;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.build;
}

// A repository on disk, gone with it.
struct Stored {
  test::TempDir scratch;
  NullObserver observer;
  std::unique_ptr<store::Repository> repository;

  explicit Stored(const char* name) {
    const auto made = test::write_sparse_checkpoint(kHeaders / name, scratch.path());
    store::StoreContext context;
    context.observer = &observer;
    auto opened = store::open_disk_repository({.kind = store::ReferenceKind::kDisk,
                                               .text = name,
                                               .location = made.directory.string(),
                                               .revision = "",
                                               .path = ""},
                                              context);
    EXPECT_THAT(opened, test::IsOk());
    if (opened) repository = *std::move(opened);
  }

  Checkpoint load() {
    auto checkpoint = load_checkpoint(*repository, observer);
    EXPECT_THAT(checkpoint, test::IsOk());
    return checkpoint ? *std::move(checkpoint) : Checkpoint();
  }
};

class PublishedMatching : public ::testing::TestWithParam<Case> {};

// int4 weights: seven in each layer, two more for its per-layer input and one in all (E2B), less
// the keys and values of 20 layers that share them (E2B: with k_norm 60 absences) or the values of
// full attention (12B 8, 26B 5, 31B 10), and three for each of 30 x 128 experts (26B); then tables.
// A head that only the build has is compared with the embedding.
INSTANTIATE_TEST_SUITE_P(Gemma4, PublishedMatching,
                         ::testing::Values(Case{"E2B-bf16", "E2B-w4a16", 276, 1676, 60},
                                           Case{"E2B-bf16", "E2B-repack", 276, 1675, 60},
                                           Case{"E2B-bf16", "E2B-text", 276, 264, 1471},
                                           Case{"E2B-bf16", "E2B-ple4", 277, 263, 1471},
                                           Case{"E2B-bf16", "E2B-emb4", 279, 262, 1471},
                                           Case{"12B-bf16-5GB", "12B-w4a16", 328, 350, 0},
                                           Case{"12B-bf16", "12B-repack", 328, 349, 0},
                                           Case{"26B-A4B-bf16", "26B-A4B-repack", 11725, 748, 0},
                                           Case{"26B-A4B-bf16-5GB", "26B-A4B-emb4", 11727, 391,
                                                356},
                                           Case{"31B-bf16", "31B-w4a16", 410, 779, 0}),
                         [](const auto& test_case) {
                           std::string name = test_case.param.build;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(PublishedMatching, LeavesNothingUnmatched) {
  if (!fs::exists(kHeaders)) GTEST_SKIP() << "needs the headers beside the source tree";
  Stored source_files(GetParam().source);
  Stored build_files(GetParam().build);
  const Checkpoint source = source_files.load();
  const Checkpoint build = build_files.load();
  const std::vector<Weight> source_weights = list_weights(source);
  const std::vector<Weight> build_weights = list_weights(build);
  const auto matching = match_weights(source, source_weights, build, build_weights);
  ASSERT_THAT(matching, test::IsOk());
  EXPECT_THAT(matching->findings, IsEmpty());
  EXPECT_THAT(matching->source_only, IsEmpty());
  EXPECT_THAT(matching->build_only, IsEmpty());
  EXPECT_EQ(matching->quantized.size(), GetParam().quantized);
  EXPECT_EQ(matching->plain.size(), GetParam().plain);
  EXPECT_EQ(matching->absent_by_design.size(), GetParam().absent);
}

}  // namespace
}  // namespace gridscope::model
