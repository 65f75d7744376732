#include "gridscope/cli/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "gridscope/cli/completion.hpp"
#include "gridscope/cli/help.hpp"
#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome run_words(const std::vector<const char*>& words) {
  CaptureStdout();
  CaptureStderr();
  const int code = run(words);
  return {code, GetCapturedStdout(), GetCapturedStderr()};
}

TEST(Run, ExplainsItselfWithoutArguments) {
  const Outcome outcome = run_words({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, program_help());
}

TEST(Run, PrintsHelpAndVersion) {
  EXPECT_EQ(run_words({"--help"}).out, program_help());
  EXPECT_EQ(run_words({"man", "--help"}).out, verb_help(*find_verb("man")));
  const Outcome version = run_words({"--version"});
  EXPECT_EQ(version.out, version_text());
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.err, "");
}

TEST(Run, ReportsWrongUsage) {
  const Outcome outcome = run_words({"completion", "zsh", "--color", "never"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "gridscope: completion: SHELL: expected bash, found \"zsh\"; "
            "see gridscope completion --help\n");
}

TEST(Run, WritesTheAnswerOfAVerb) {
  const Outcome outcome = run_words({"completion", "bash"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, bash_completion());
  EXPECT_EQ(outcome.err, "");
}

TEST(Run, WritesToTheOutput) {
  const test::TempDir directory;
  const std::string path = (directory / "script").string();
  const Outcome outcome = run_words({"completion", "bash", "-o", path.c_str()});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(test::to_text(test::read_file(path)), bash_completion());
}

TEST(Run, OpensTheOutputFirst) {
  const test::TempDir directory;
  const std::string path = (directory / "missing/report").string();
  const Outcome outcome = run_words({"inspect", "/does/not/exist", "-o", path.c_str()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err, "gridscope: inspect /does/not/exist: cannot write \"" + path +
                             "\": No such file or directory\n");
}

TEST(Run, SaysWhyACheckFailedWhenTheReportGoesToAFile) {
  const test::TempDir directory;
  test::SafetensorsBuilder shard;
  shard.tensor("model.embed_tokens.weight", Dtype::kBF16, {4, 8});
  shard.tensor("lm_head.weight", Dtype::kBF16, {4, 8});
  test::write_checkpoint(directory / "model",
                         {.config = R"({"model_type": "llama", "tie_word_embeddings": true})",
                          .shards = {{"model.safetensors", shard}}});
  const std::string model = (directory / "model").string();
  const std::string path = (directory / "report").string();
  const std::vector<const char*> words = {"inspect", model.c_str(), "--no-cache", "--fail-on",
                                          "warning", "--output",    path.c_str()};
  const Outcome outcome = run_words(words);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "gridscope: inspect " + model +
                             ": found 1 warning: exit code 1, as --fail-on warning asks; see \"" +
                             path + "\"\n");
  std::vector<const char*> quiet = words;
  quiet.push_back("--quiet");
  EXPECT_EQ(run_words(quiet).err, "");
}

int report(const std::exception& exception) {
  CaptureStderr();
  try {
    if (const auto* memory = dynamic_cast<const std::bad_alloc*>(&exception)) throw *memory;
    throw std::runtime_error(exception.what());
  } catch (...) {
    return report_exception();
  }
}

TEST(ReportException, SaysWhatItWas) {
  EXPECT_EQ(report(std::runtime_error("odd")), 3);
  EXPECT_EQ(GetCapturedStderr(), "gridscope: internal error: odd; please report it\n");
  EXPECT_EQ(report(std::bad_alloc()), 3);
  EXPECT_EQ(GetCapturedStderr(),
            "gridscope: out of memory; give it more, or lower the limits (--max-...)\n");
}

}  // namespace
}  // namespace gridscope::cli
