#include "gridscope/cli/console_observer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "support/checkpoints.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::cli {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::IsEmpty;

// Standard error as a file that is read back.
class ConsoleObserverTest : public ::testing::Test {
 protected:
  ~ConsoleObserverTest() override { ::close(options_.descriptor); }

  [[nodiscard]] std::string shown() const { return test::to_text(test::read_file(path_)); }

  test::TempDir directory_;
  std::filesystem::path path_ = directory_ / "stderr";
  ConsoleOptions options_ = {
      .descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  test::ManualClock clock_;
};

TEST_F(ConsoleObserverTest, ShowsAnErrorWithItsRemedy) {
  ConsoleObserver console(options_, clock_);
  console.show_error("inspect x", {.message = "it is gone", .remedy = "look elsewhere"});
  console.show_error("", {.message = "no command"});
  EXPECT_EQ(shown(),
            "gridscope: inspect x: it is gone; look elsewhere\n"
            "gridscope: no command\n");
}

TEST_F(ConsoleObserverTest, ShowsAWarningOnce) {
  ConsoleObserver console(options_, clock_);
  for (int i = 0; i < 3; ++i) {
    console.on_event(Warning{.code = "SLOW", .message = "host a is slow", .remedy = "wait"});
  }
  console.on_event(Warning{.code = "SLOW", .message = "host b is slow", .remedy = ""});
  EXPECT_EQ(shown(),
            "gridscope: warning: SLOW: host a is slow; wait\n"
            "gridscope: warning: SLOW: host b is slow\n");
}

TEST_F(ConsoleObserverTest, KeepsDetailsForThoseWhoAsk) {
  const auto tell = [](ConsoleObserver& console) {
    console.on_event(Detail{"it is on disk"});
    console.on_event(RequestSent{.method = "GET", .url = "https://host/x"});
    console.on_event(RetryScheduled{
        .what = "https://host/x", .reason = "503", .attempt = 2, .wait = milliseconds(1500)});
    console.on_event(RangeRead{.source = "x", .bytes = 8});
  };
  options_.notices = Notices::kHidden;
  ConsoleObserver plain(options_, clock_);
  tell(plain);
  EXPECT_THAT(shown(), IsEmpty());
  options_.details = Details::kShown;
  ConsoleObserver verbose(options_, clock_);
  tell(verbose);
  EXPECT_EQ(shown(),
            "gridscope: it is on disk\n"
            "gridscope: GET https://host/x\n"
            "gridscope: trying https://host/x again in 1.5 s: 503 (attempt 2 failed)\n");
}

TEST_F(ConsoleObserverTest, DrawsProgressAfterHalfASecondAndNotTooOften) {
  options_.progress = ProgressLine::kShown;
  ConsoleObserver console(options_, clock_);
  console.on_event(Progress{.stage = "headers", .done = 1, .total = 9});
  clock_.advance(milliseconds(499));
  console.on_event(Progress{.stage = "headers", .done = 2, .total = 9});
  EXPECT_THAT(shown(), IsEmpty());
  clock_.advance(milliseconds(1));
  console.on_event(Progress{.stage = "headers", .done = 3, .total = 9});
  console.on_event(Progress{.stage = "headers", .done = 4, .total = 9});
  EXPECT_EQ(shown(), "\r\x1b[Kheaders 3/9");
  clock_.advance(milliseconds(100));
  console.on_event(Progress{.stage = "listing", .done = 5000, .total = 0});
  EXPECT_EQ(shown(), "\r\x1b[Kheaders 3/9\r\x1b[Klisting 5,000");
}

TEST_F(ConsoleObserverTest, SaysHowFastBytesComeAndWhatIsLeft) {
  constexpr std::uint64_t kMiB = 1024 * 1024;
  options_.progress = ProgressLine::kShown;
  ConsoleObserver console(options_, clock_);
  const auto report = [&](std::uint64_t done, std::uint64_t total) {
    console.on_event(Progress{
        .stage = "comparing", .done = done, .total = total, .unit = Progress::Unit::kBytes});
  };
  report(10 * kMiB, 1034 * kMiB);
  clock_.advance(milliseconds(500));
  report(14 * kMiB, 1034 * kMiB);
  EXPECT_EQ(shown(), "\r\x1b[Kcomparing 14.0 MiB/1.010 GiB");
  clock_.advance(milliseconds(1500));
  report(34 * kMiB, 1034 * kMiB);
  EXPECT_THAT(shown(), EndsWith("comparing 34.0 MiB/1.010 GiB, 12.0 MiB/s, 1 min 23 s left"));
  clock_.advance(milliseconds(2000));
  report(1034 * kMiB, 1034 * kMiB);
  EXPECT_THAT(shown(), EndsWith("256.0 MiB/s, 0 s left"));
}

TEST_F(ConsoleObserverTest, WipesProgressBeforeALineAndAtTheEnd) {
  options_.progress = ProgressLine::kShown;
  ConsoleObserver console(options_, clock_);
  clock_.advance(milliseconds(500));
  console.on_event(Progress{.stage = "a", .done = 1, .total = 2});
  console.show_error("", {.message = "no"});
  EXPECT_EQ(shown(), "\r\x1b[Ka 1/2\r\x1b[Kgridscope: no\n");
  console.finish();
  EXPECT_EQ(shown(), "\r\x1b[Ka 1/2\r\x1b[Kgridscope: no\n");
  clock_.advance(milliseconds(500));
  console.on_event(Progress{.stage = "b", .done = 1, .total = 2});
  console.finish();
  EXPECT_EQ(shown(), "\r\x1b[Ka 1/2\r\x1b[Kgridscope: no\n\r\x1b[Kb 1/2\r\x1b[K");
}

TEST_F(ConsoleObserverTest, DrawsNothingUnlessToldTo) {
  ConsoleObserver console(options_, clock_);
  clock_.advance(milliseconds(5000));
  console.on_event(Progress{.stage = "a", .done = 1, .total = 2});
  console.finish();
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ConsoleObserverTest, SaysOnTheProgressLineWhyItWaits) {
  options_.progress = ProgressLine::kShown;
  ConsoleObserver console(options_, clock_);
  clock_.advance(milliseconds(500));
  console.on_event(RetryScheduled{.what = "GET x", .reason = "429", .wait = milliseconds(172'000)});
  EXPECT_EQ(shown(), "\r\x1b[Ktrying GET x again in 172.0 s: 429");
}

TEST_F(ConsoleObserverTest, SaysOnceForEachHostThatItIsTriedAgain) {
  ConsoleObserver console(options_, clock_);
  for (const char* what : {"GET http://a:9/x", "GET http://a:9/y?...", "GET https://b", "odd"}) {
    console.on_event(RetryScheduled{.what = what, .reason = "refused", .wait = milliseconds(500)});
  }
  EXPECT_EQ(shown(),
            "gridscope: a:9 cannot be read for now (refused); trying again for a while\n"
            "gridscope: b cannot be read for now (refused); trying again for a while\n"
            "gridscope: odd cannot be read for now (refused); trying again for a while\n");
}

TEST_F(ConsoleObserverTest, ColorsLabelsAlone) {
  options_.color = Color::kColored;
  ConsoleObserver console(options_, clock_);
  console.on_event(Warning{.code = "SLOW", .message = "m", .remedy = ""});
  console.show_error("man", {.message = "m"});
  EXPECT_EQ(shown(),
            "gridscope: \x1b[33mwarning:\x1b[0m SLOW: m\n"
            "\x1b[31mgridscope:\x1b[0m man: m\n");
}

TEST_F(ConsoleObserverTest, NeutralisesForeignText) {
  options_.details = Details::kShown;
  ConsoleObserver console(options_, clock_);
  console.on_event(Warning{.code = "\x1b", .message = "a\x1b[2J", .remedy = "b\nc"});
  console.on_event(Detail{"d\re"});
  console.show_error("s", {.message = "f\x1b]0;g\x07"});
  EXPECT_EQ(shown(),
            "gridscope: warning: \\x1B: a\\x1B[2J; b\\x0Ac\n"
            "gridscope: d\\x0De\n"
            "gridscope: s: f\\x1B]0;g\\x07\n");
}

}  // namespace
}  // namespace gridscope::cli
