#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/support.hpp"
#include "gridscope/cli/verb_list.hpp"
#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A checkpoint that claims to tie its output layer and stores it: a warning.
class InspectVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    test::SafetensorsBuilder shard;
    shard.tensor("model.embed_tokens.weight", Dtype::kBF16, {4, 8});
    shard.tensor("lm_head.weight", Dtype::kBF16, {4, 8});
    test::write_checkpoint(directory_.path(),
                           {.config = R"({"model_type": "llama", "tie_word_embeddings": true})",
                            .shards = {{"model.safetensors", shard}}});
  }

  Result<Answer> run(const std::vector<std::string>& options) {
    std::vector<std::string> words = {"inspect", directory_.path().string(), "--no-cache"};
    words.insert(words.end(), options.begin(), options.end());
    return run_inspect(arguments_of(words), {.observer = observer_});
  }

  NullObserver observer_;

 private:
  test::TempDir directory_;
};

TEST_F(InspectVerb, RendersEveryFormat) {
  const auto text = run({});
  ASSERT_THAT(text, test::IsOk());
  EXPECT_THAT(text->text, HasSubstr("TIED_HEAD_STORED"));
  const auto json = run({"--json"});
  ASSERT_THAT(json, test::IsOk());
  EXPECT_THAT(json->text, StartsWith("{\n"));
  EXPECT_THAT(json->text, HasSubstr("\"gridscope.inspection/1\""));
  const auto markdown = run({"--format", "markdown"});
  ASSERT_THAT(markdown, test::IsOk());
  EXPECT_THAT(markdown->text, HasSubstr("| --- |"));
}

TEST_F(InspectVerb, ListsTensorsAndGroupsWhenAsked) {
  const auto plain = run({"--json"});
  ASSERT_THAT(plain, test::IsOk());
  EXPECT_THAT(plain->text, Not(HasSubstr("\"offset\"")));
  const auto full = run({"--json", "--tensors", "--by", "file"});
  ASSERT_THAT(full, test::IsOk());
  EXPECT_THAT(full->text, HasSubstr("\"offset\""));
  EXPECT_THAT(full->text, HasSubstr("\"file\""));
}

TEST_F(InspectVerb, FailsOnTheSeverityThatIsNamed) {
  EXPECT_EQ(run({}).value().exit_code, 0);
  EXPECT_EQ(run({"--fail-on", "error"}).value().exit_code, 0);
  EXPECT_EQ(run({"--fail-on", "warning"}).value().exit_code, 1);
  EXPECT_EQ(run({"--fail-on", "warning"}).value().failures, "1 warning");
  EXPECT_EQ(run({"--fail-on", "never"}).value().exit_code, 0);
}

TEST_F(InspectVerb, HeedsTheLimits) {
  EXPECT_THAT(run({"--max-tensors", "1"}), test::Fails(ErrorCode::kLimit, HasSubstr("tensors")));
}

TEST_F(InspectVerb, PassesErrorsOn) {
  const auto gone =
      run_inspect(arguments_of({"inspect", "./does-not-exist"}), {.observer = observer_});
  EXPECT_THAT(gone, test::Fails(ErrorCode::kNotFound, HasSubstr("does-not-exist")));
}

}  // namespace
}  // namespace gridscope::cli
