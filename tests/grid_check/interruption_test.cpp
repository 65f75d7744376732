// The built program, ended in the middle of a check: killed, or cut off from what it reads. Either
// way what was done is kept, nothing is said that could be taken for a result, and the same command
// goes on to the report of a run that nobody disturbed.

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "support/http_server.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny_gemma.hpp"

namespace gridscope::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// What the journal holds besides its first line, which says what check it is of.
std::size_t results_in(const fs::path& journal) {
  if (!fs::exists(journal)) return 0;
  const Bytes text = read_file(journal);
  const auto lines = std::ranges::count(text, std::byte{'\n'});
  return lines == 0 ? 0 : static_cast<std::size_t>(lines) - 1;
}

// Serves a directory until a journal holds so many results, and then only trouble. The reader of
// the files is thereby held where a test wants it, however slow the machine is.
class FailingServer {
 public:
  FailingServer(fs::path directory, fs::path journal)
      : directory_(std::move(directory)), journal_(std::move(journal)) {}

  void fail_after(std::size_t results, HttpReply trouble) {
    const std::scoped_lock lock(mutex_);
    spared_ = results;
    trouble_ = std::move(trouble);
  }
  void work() { fail_after(kNever, {}); }

  [[nodiscard]] std::string url(const std::string& path) const { return server_.url(path); }
  [[nodiscard]] std::size_t requests() const { return server_.requests().size(); }

 private:
  HttpReply answer(const HttpRequest& request) {
    const std::scoped_lock lock(mutex_);
    if (spared_ != kNever && results_in(journal_) >= spared_) return trouble_;
    const fs::path file = directory_ / request.path().substr(1);
    if (!fs::is_regular_file(file)) return {.status = 404};
    return serve_content(request, to_text(read_file(file)));
  }

  const fs::path directory_;
  const fs::path journal_;
  std::mutex mutex_;  // of what follows
  std::size_t spared_ = kNever;
  HttpReply trouble_;
  HttpServer server_{[this](const HttpRequest& request) { return answer(request); }};
};

class Interruption : public ::testing::Test {
 protected:
  Interruption() {
    const TinyGemma model = make_tiny_gemma();
    static_cast<void>(tiny_source(model).write(directory_ / "source"));
    static_cast<void>(tiny_compressed_tensors(model).write(directory_ / "build"));
    const ProcessResult undisturbed = run_process(command());
    EXPECT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
    whole_ = undisturbed.out;
    requests_ = server_.requests();
  }

  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {GRIDSCOPE_PROGRAM,
                                      "grid-check",
                                      server_.url("/source/model.safetensors"),
                                      server_.url("/build/model.safetensors"),
                                      "--no-cache",
                                      "--jobs",
                                      "1",
                                      "--format",
                                      "json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] std::vector<std::string> resuming(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = command({"--resume", journal_.string()});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Lets the check come to its n-th result and not to its end, and kills it there.
  void kill_after(std::size_t results) {
    server_.fail_after(
        results, {.fault = {.kind = HttpFault::Kind::kStall, .from = HttpFault::From::kResponse}});
    RunningProcess running(resuming());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(50);
    while (results_in(journal_) < results && !running.has_ended() &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    running.send(SIGKILL);
    const ProcessResult killed = running.wait();
    EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.err;
    EXPECT_EQ(killed.out, "");
    EXPECT_GE(results_in(journal_), results);
    server_.work();
  }

  // Runs the same command on what there is, to its end.
  void expect_completion() {
    const std::size_t done = results_in(journal_);
    const std::size_t sent = server_.requests();
    const ProcessResult resumed = run_process(resuming());
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(resumed.out, whole_);
    EXPECT_LT(done, results_in(journal_)) << "the check was not interrupted";
    EXPECT_LT(server_.requests() - sent, requests_) << "what was done was done again";
  }

  TempDir directory_;
  fs::path journal_ = directory_ / "journal";
  FailingServer server_{directory_.path(), journal_};
  std::string whole_;         // what a run says that nobody disturbs
  std::size_t requests_ = 0;  // that it sends
};

class Killed : public Interruption, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(Killed, GoesOnToTheSameReport) {
  kill_after(GetParam());
  expect_completion();
}

INSTANTIATE_TEST_SUITE_P(AfterResults, Killed, ::testing::Values(1, 2, 3, 10),
                         ::testing::PrintToStringParamName());

TEST_F(Interruption, MayHappenAgainAndAgain) {
  for (const std::size_t more : {1U, 2U, 3U}) kill_after(results_in(journal_) + more);
  expect_completion();
}

// One way to lose the network, chosen from those that are not waited out for long.
struct Loss {
  std::string name;
  HttpReply reply;
  std::string said;  // of it
};
void PrintTo(const Loss& loss, std::ostream* out) {
  *out << loss.name;
}

class NetworkLost : public Interruption, public ::testing::WithParamInterface<Loss> {
 protected:
  // Runs into the loss after two results; nothing may come of it but a journal.
  void expect_no_verdict(const std::vector<std::string>& more) {
    server_.fail_after(results_in(journal_) + 2, GetParam().reply);
    const ProcessResult lost = run_process(resuming(more));
    EXPECT_EQ(lost.exit_code, 3);
    EXPECT_EQ(lost.out, "");
    EXPECT_THAT(lost.err,
                AllOf(HasSubstr(server_.url("/")), HasSubstr(GetParam().said),
                      HasSubstr("run again with --resume \"" + journal_.string() + "\"")));
    server_.work();
  }
};

TEST_P(NetworkLost, GivesNoVerdictAndGoesOnLater) {
  expect_no_verdict({});
  expect_completion();
}

TEST_P(NetworkLost, LeavesTheOutputAsItWas) {
  const fs::path report = directory_ / "reports" / "report.json";
  fs::create_directories(report.parent_path());
  expect_no_verdict({"--output", report.string()});
  EXPECT_TRUE(fs::is_empty(report.parent_path()));
  write_file(report, std::string_view("old"));
  expect_no_verdict({"--output", report.string()});
  EXPECT_EQ(to_text(read_file(report)), "old");
  expect_completion();
}

INSTANTIATE_TEST_SUITE_P(
    All, NetworkLost,
    ::testing::Values(
        Loss{.name = "ServerIsAwayForADay",
             .reply = {.status = 503, .fields = {{.name = "Retry-After", .value = "86400"}}},
             .said = "503"},
        Loss{.name = "ContentHostIsNotFound",
             .reply = {.status = 302,
                       .fields = {{.name = "Location",
                                   .value = "http://no-such-host.invalid/model.safetensors"}}},
             .said = "no-such-host.invalid"},
        Loss{.name = "LoginPageAnswers",
             .reply = {.fields = {{.name = "Content-Type", .value = "text/html"}},
                       .body = "<html>Welcome to our hotel</html>"},
             .said = "file"},
        Loss{.name = "SomethingElseAnswers", .reply = {.raw = "220 ready\r\n"}, .said = "HTTP"}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace gridscope::test
