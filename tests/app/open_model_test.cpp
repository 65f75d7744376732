#include "open_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/grid_models.hpp"
#include "app/support.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::app {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class OpenModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_grid_source(directory_ / "model");
    context_ = Context::make(settings_with({{"HF_HUB_OFFLINE", "1"}}), observer_).value();
  }
  [[nodiscard]] Result<OpenModel> open(const std::string& reference, const std::string& revision) {
    const auto resolved = resolve_model(reference, revision, *context_);
    if (!resolved) return tl::make_unexpected(resolved.error());
    return open_model(*resolved, *context_, observer_);
  }

  test::TempDir directory_;
  test::CollectingObserver observer_;
  std::unique_ptr<Context> context_;
};

TEST_F(OpenModelTest, LoadsWhatLiesOnDisk) {
  const auto opened = open((directory_ / "model").string(), "");
  ASSERT_THAT(opened, test::IsOk());
  EXPECT_THAT(opened->checkpoint.tensors, SizeIs(2));
  EXPECT_EQ(opened->repository->info().location, (directory_ / "model").string());
}

TEST_F(OpenModelTest, ARevisionIsForTheHubAlone) {
  EXPECT_THAT(open((directory_ / "model").string(), "main"),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("no repository of the Hub")));
  EXPECT_THAT(open("hf://org/name@v1", "v2"),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("two revisions")));
  EXPECT_THAT(open("", ""), test::Fails(ErrorCode::kInvalidArgument, _));
}

}  // namespace
}  // namespace gridscope::app
