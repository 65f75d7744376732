#include "gridscope/app/output_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::app {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckOutput : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_file(weights(), "weights");
    test::write_file(model() / "sub/README.md", "# A model");
  }

  [[nodiscard]] fs::path model() const { return directory_ / "model"; }
  [[nodiscard]] fs::path weights() const { return model() / "model.safetensors"; }
  [[nodiscard]] Status check(const fs::path& output) const {
    return check_output(model().string(), output);
  }

  test::TempDir directory_;
};

TEST_F(CheckOutput, RefusesTheFilesOfTheModel) {
  EXPECT_THAT(check(weights()),
              test::Fails(ErrorCode::kInvalidArgument,
                          AllOf(HasSubstr(weights().string()), HasSubstr("choose another file"))));
  EXPECT_THAT(check(model() / "sub/README.md"),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr(model().string())));
  EXPECT_THAT(check_output(weights().string(), weights()),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("model.safetensors")));
  EXPECT_THAT(check_output("file://" + model().string(), weights()),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("model.safetensors")));
}

TEST_F(CheckOutput, KnowsThemByOtherNames) {
  fs::create_symlink(weights(), directory_ / "soft");
  fs::create_hard_link(weights(), directory_ / "hard");
  for (const fs::path& name :
       {directory_ / "soft", directory_ / "hard", model() / "sub/../model.safetensors"}) {
    EXPECT_THAT(check(name), test::Fails(ErrorCode::kInvalidArgument, HasSubstr("of the model")));
  }
}

TEST_F(CheckOutput, AllowsWhatIsNew) {
  EXPECT_THAT(check(model() / "report.json"), test::IsOk());
  EXPECT_THAT(check(directory_ / "absent/report.json"), test::IsOk());
  EXPECT_THAT(check("/dev/null"), test::IsOk());
}

TEST_F(CheckOutput, AllowsReportsAndWhatLiesElsewhere) {
  test::write_file(model() / "report.json", "{\n  \"schema\": \"gridscope.inspection/1\",\n");
  test::write_file(model() / "report.md", "# Inspection of model\n");
  test::write_file(directory_ / "other.safetensors", "weights");
  for (const fs::path& output :
       {model() / "report.json", model() / "report.md", directory_ / "other.safetensors"}) {
    EXPECT_THAT(check(output), test::IsOk());
  }
}

TEST_F(CheckOutput, RefusesWhatIsToBeReadWhateverItLooksLike) {
  const fs::path part = directory_ / "part-1.jsonl";
  test::write_file(part, R"({"schema":"gridscope.grid-check-part/1"})");
  EXPECT_THAT(check_output(part.string(), part),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("which is to be read")));
}

TEST_F(CheckOutput, KnowsTheShardsBesideAFileAndNothingElse) {
  test::write_file(model() / "shard.safetensors", "weights");
  test::write_file(model() / "notes", "notes");
  EXPECT_THAT(check_output(weights().string(), model() / "shard.safetensors"),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("shard.safetensors")));
  EXPECT_THAT(check_output(weights().string(), model() / "notes"), test::IsOk());
}

class CheckOutputApart : public CheckOutput {
 protected:
  [[nodiscard]] Status check(const fs::path& output) const {
    return check_output_apart(output, "resume", journal_);
  }
  void expect_refused() const {
    fs::create_directory(directory_ / "sub");
    fs::create_symlink("journal", directory_ / "soft");
    fs::create_directory_symlink(directory_.path(), directory_ / "sub/up");
    for (const fs::path& name : {journal_, directory_ / "./sub/../journal", directory_ / "soft",
                                 directory_ / "sub/up/journal"}) {
      EXPECT_THAT(check(name),
                  test::Fails(ErrorCode::kInvalidArgument,
                              AllOf(HasSubstr(journal_.string()), HasSubstr("--resume"),
                                    HasSubstr("choose another file"))))
          << name;
    }
  }

  const fs::path journal_ = directory_ / "journal";
};

TEST_F(CheckOutputApart, KnowsAFileThatIsThereByOtherNames) {
  test::write_file(journal_, "text");
  expect_refused();
  fs::create_hard_link(journal_, directory_ / "hard");
  EXPECT_THAT(check(directory_ / "hard"), ::testing::Not(test::IsOk()));
}

TEST_F(CheckOutputApart, KnowsAFileThatIsYetToBeWritten) {
  expect_refused();
  EXPECT_FALSE(fs::exists(journal_));
  EXPECT_THAT(check_output_apart("no-such-journal", "resume", "./no-such-journal"),
              ::testing::Not(test::IsOk()));
}

TEST_F(CheckOutputApart, AllowsOthers) {
  for (const bool is_there : {false, true}) {
    if (is_there) test::write_file(journal_, "text");
    EXPECT_THAT(check(directory_ / "report"), test::IsOk());
    EXPECT_THAT(check(weights()), test::IsOk());
  }
  fs::create_symlink("circle", directory_ / "circle");
  EXPECT_THAT(check(directory_ / "circle"), test::IsOk());
}

TEST_F(CheckOutput, LeavesOtherModelsToThoseWhoReadThem) {
  for (const std::string& elsewhere :
       {std::string("hf://org/name"), std::string("./absent"), std::string()}) {
    EXPECT_THAT(check_output(elsewhere, weights()), test::IsOk());
  }
}

}  // namespace
}  // namespace gridscope::app
