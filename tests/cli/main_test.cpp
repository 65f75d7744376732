// The built program, case by case. A case is a directory under cases/ with
//
//   cmd              a bash script; `gridscope` is the program, the working directory holds the
//                    checkpoints made below and nothing else
//   exit             its exit code
//   stdout, stderr   what it must say; no file means nothing; <*> stands for any text in a line
//
// With GRIDSCOPE_REWRITE=1 expectations that do not hold are written anew from what was said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/checkpoints.hpp"
#include "support/http_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::test {
namespace {

namespace fs = std::filesystem;

// A line with <*> in it against a line: the pieces between must follow one another.
bool line_matches(std::string_view pattern, std::string_view line) {
  constexpr std::string_view kAny = "<*>";
  std::size_t mark = pattern.find(kAny);
  if (mark == std::string_view::npos) return pattern == line;
  if (!line.starts_with(pattern.substr(0, mark))) return false;
  line.remove_prefix(mark);
  pattern.remove_prefix(mark + kAny.size());
  for (mark = pattern.find(kAny); mark != std::string_view::npos; mark = pattern.find(kAny)) {
    const std::size_t found = line.find(pattern.substr(0, mark));
    if (found == std::string_view::npos) return false;
    line.remove_prefix(found + mark);
    pattern.remove_prefix(mark + kAny.size());
  }
  return line.ends_with(pattern);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (text.empty() || text.back() != '\n') lines.emplace_back("(no line break at the end)");
  return lines;
}

bool text_matches(const std::string& pattern, const std::string& text) {
  const auto expected = lines_of(pattern);
  const auto found = lines_of(text);
  return std::ranges::equal(expected, found, line_matches);
}

std::string read_if_there(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Writes anew or removes; a file that says nothing is not kept.
void rewrite(const fs::path& path, const std::string& text) {
  if (text.empty()) {
    fs::remove(path);
  } else {
    write_file(path, text);
  }
}

void check(const fs::path& expectation, const std::string& said) {
  const std::string expected = read_if_there(expectation);
  if (text_matches(expected, said)) return;
  if (std::getenv("GRIDSCOPE_REWRITE") != nullptr) return rewrite(expectation, said);
  ADD_FAILURE() << expectation.filename().string() << " expected:\n"
                << expected << "\nfound:\n"
                << said;
}

SafetensorsBuilder tiny_shard() {
  return SafetensorsBuilder()
      .tensor("model.embed_tokens.weight", Dtype::kBF16, {32, 8})
      .tensor("model.layers.0.self_attn.q_proj.weight", Dtype::kBF16, {8, 8})
      .tensor("model.layers.0.mlp.up_proj.weight", Dtype::kF32, {16, 8})
      .tensor("model.layers.0.input_layernorm.weight", Dtype::kF32, {8});
}

void write_checkpoints(const fs::path& directory) {
  write_checkpoint(directory / "tiny",
                   {.config = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                                  "tie_word_embeddings": true})",
                    .shards = {{"model.safetensors", tiny_shard()}}});
  write_checkpoint(directory / "tied",
                   {.config = R"({"model_type": "llama", "tie_word_embeddings": true})",
                    .shards = {{"model.safetensors",
                                tiny_shard().tensor("lm_head.weight", Dtype::kBF16, {32, 8})}}});
  write_checkpoint(
      directory / "sharded",
      {.config = R"({"model_type": "llama", "tie_word_embeddings": true})",
       .shards = {{"model-00001-of-00002.safetensors", tiny_shard()},
                  {"model-00002-of-00002.safetensors",
                   SafetensorsBuilder().tensor("model.norm.weight", Dtype::kF32, {8})}}});
  fs::create_directories(directory / "incomplete");
  fs::copy(directory / "sharded", directory / "incomplete");
  fs::remove(directory / "incomplete/model-00002-of-00002.safetensors");
  write_file(directory / "broken.safetensors",
             tiny_shard().build(SafetensorsDefect::kTruncatedData));
  write_file(directory / "escape.safetensors",
             safetensors_file(R"({"evil\u001b[2J\u000aname":)"
                              R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                              4));
  write_file(directory / "model.gguf", GgufBuilder()
                                           .key("general.architecture", "llama")
                                           .tensor("token_embd.weight", Dtype::kF32, {8, 4})
                                           .build());
}

ProcessOptions surroundings(const fs::path& directory) {
  const fs::path program = GRIDSCOPE_PROGRAM;
  const char* const path = std::getenv("PATH");
  ProcessOptions options = {.directory = directory.string()};
  options.environment = {
      {"PATH", program.parent_path().string() + ":" + (path == nullptr ? "" : path)},
      {"HOME", (directory / "home").string()},
      {"LC_ALL", "C.UTF-8"},
  };
  for (const char* unset :
       {"XDG_CACHE_HOME", "HF_ENDPOINT", "HF_TOKEN", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE",
        "NO_COLOR", "TERM", "http_proxy", "https_proxy", "SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    options.environment.emplace_back(unset, "");
  }
  return options;
}

fs::path cases_directory() {
  return fs::path(GRIDSCOPE_SOURCE_DIR) / "tests/cli/cases";
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cases_directory())) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class CommandLine : public ::testing::TestWithParam<std::string> {};

TEST_P(CommandLine, SaysWhatIsExpected) {
  const fs::path expected = cases_directory() / GetParam();
  const TempDir directory;
  write_checkpoints(directory.path());
  // A case that means the Hub by mistake fails everywhere alike.
  const ProcessResult ran =
      run_process({"env", "HF_HUB_OFFLINE=1", "bash", (expected / "cmd").string()},
                  surroundings(directory.path()));
  check(expected / "exit", std::to_string(ran.exit_code) + "\n");
  check(expected / "stdout", ran.out);
  check(expected / "stderr", ran.err);
}

INSTANTIATE_TEST_SUITE_P(Cases, CommandLine, ::testing::ValuesIn(case_names()),
                         [](const auto& one) { return one.param; });

class Signals : public ::testing::TestWithParam<std::string> {};

TEST_P(Signals, EndAHangingReadWithinASecondAndLeaveNothing) {
  const HttpServer server([](const HttpRequest&) {
    return HttpReply{
        .fault = {.kind = HttpFault::Kind::kStall, .from = HttpFault::From::kResponse}};
  });
  const TempDir directory;
  const std::string url = server.url("/model.safetensors");
  const ProcessResult ran =
      run_process({"timeout", "--preserve-status", "-s", GetParam(), "0.5", GRIDSCOPE_PROGRAM,
                   "inspect", url, "-o", "report", "--no-cache"},
                  surroundings(directory.path()));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_LT(ran.wall.count(), 1.5);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "gridscope: inspect " + url + ": stopped by SIG" + GetParam() + "\n");
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

INSTANTIATE_TEST_SUITE_P(All, Signals, ::testing::Values("INT", "TERM", "HUP"),
                         [](const auto& one) { return one.param; });

TEST(LineMatches, LetsMarksStandForAnything) {
  EXPECT_TRUE(line_matches("a<*>c", "abc"));
  EXPECT_TRUE(line_matches("a<*>c", "ac"));
  EXPECT_TRUE(line_matches("<*>b<*>", "abc"));
  EXPECT_TRUE(line_matches("<*>", ""));
  EXPECT_FALSE(line_matches("a<*>c", "abcd"));
  EXPECT_FALSE(line_matches("a<*>b<*>b", "ab"));
  EXPECT_FALSE(line_matches("abc", "ab"));
}

TEST(TextMatches, ComparesEveryLine) {
  EXPECT_TRUE(text_matches("a\nb<*>\n", "a\nbc\n"));
  EXPECT_FALSE(text_matches("a\n", "a\nb\n"));
  EXPECT_FALSE(text_matches("a\n", "a"));
  EXPECT_FALSE(text_matches("", "\n"));
}

}  // namespace
}  // namespace gridscope::test
