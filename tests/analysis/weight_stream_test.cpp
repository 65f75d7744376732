#include "gridscope/analysis/weight_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "app/grid_models.hpp"
#include "gridscope/store/disk_repository.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::analysis {
namespace {

using ::testing::_;

class WeightStream : public ::testing::Test {
 protected:
  void load(const std::filesystem::path& directory) {
    store::StoreContext context;
    context.observer = &observer_;
    const store::ModelReference reference{.kind = store::ReferenceKind::kDisk,
                                          .text = directory.string(),
                                          .location = directory.string(),
                                          .revision = "",
                                          .path = ""};
    repository_ = store::open_disk_repository(reference, context).value();
    checkpoint_ = model::load_checkpoint(*repository_, observer_).value();
    weights_ = model::list_weights(checkpoint_);
  }
  [[nodiscard]] const model::Weight& projection() const {
    return *std::ranges::find(weights_, test::kProjection, &model::Weight::name);
  }
  // All values of the projection, row by row.
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all;
    EXPECT_THAT(stream_weight(checkpoint_, projection(),
                              [&](const quant::RowBlock& block) -> Status {
                                EXPECT_EQ(block.first_row * block.columns, all.size());
                                all.insert(all.end(), block.values.begin(), block.values.end());
                                return {};
                              }),
                test::IsOk());
    return all;
  }

  test::TempDir directory_;
  NullObserver observer_;
  std::unique_ptr<store::Repository> repository_;
  model::Checkpoint checkpoint_;
  std::vector<model::Weight> weights_;
};

TEST_F(WeightStream, GivesTheSameNumbersHoweverTheyAreStored) {
  test::write_grid_source(directory_ / "source");
  test::write_grid_build(directory_ / "build");
  load(directory_ / "source");
  const std::vector<double> source = values();
  ASSERT_EQ(source.size(), test::kGridRows * test::kGridColumns);
  load(directory_ / "build");
  const std::vector<double> build = values();
  ASSERT_EQ(build.size(), source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    EXPECT_EQ(quant::rounded_to(Dtype::kBF16, build[i]), source[i]) << i;
  }
}

TEST_F(WeightStream, TheSinkMayEndIt) {
  test::write_grid_source(directory_ / "source");
  load(directory_ / "source");
  const auto stop = [](const quant::RowBlock&) -> Status {
    return fail(ErrorCode::kCancelled, "enough");
  };
  EXPECT_THAT(stream_weight(checkpoint_, projection(), stop),
              test::Fails(ErrorCode::kCancelled, _));
}

}  // namespace
}  // namespace gridscope::analysis
