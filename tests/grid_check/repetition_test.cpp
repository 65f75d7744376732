// However a check is carried out, it gives the same report to the last byte.

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>

#include "grid_check/world.hpp"
#include "gridscope/quant/cpu_target.hpp"
#include "gridscope/report/grid_check_report.hpp"
#include "gridscope/report/grid_journal.hpp"
#include "support/http_server.hpp"

namespace gridscope::test {
namespace {

namespace fs = std::filesystem;
using analysis::GridReport;
using ::testing::HasSubstr;

class Repetition : public GridCheckWorld {
 protected:
  // A build with one moved level, and a smoothed one.
  Repetition() {
    TinyGemma moved = model_;
    std::int16_t& level = moved.linear("layers.1.self_attn.o_proj").levels[100];
    level = static_cast<std::int16_t>(level == 7 ? 6 : level + 1);
    request_ = {.source = source(),
                .builds = {write(tiny_compressed_tensors(moved), "moved"),
                           write(tiny_awq(smoothed(model_)), "awq")}};
  }

  static std::string rendered(const GridReport& report) {
    return report::grid_check_json(report) + report::grid_check_text(report);
  }
  [[nodiscard]] std::string run(const app::GridCheckRequest& request) {
    return rendered(check(request));
  }
  [[nodiscard]] std::string part(const app::GridCheckRequest& request) {
    auto text = app::grid_check_part(request, *context_);
    EXPECT_THAT(text, IsOk());
    return text.value_or("");
  }

  app::GridCheckRequest request_;
};

TEST_F(Repetition, MergesShardsIntoTheReportOfOneRun) {
  const std::string whole = run(request_);
  for (const std::uint64_t count : {2U, 5U}) {
    std::vector<fs::path> parts;
    for (std::uint64_t index = count; index > 0; --index) {
      app::GridCheckRequest shard = request_;
      shard.shard = analysis::Shard{.index = index, .count = count};
      parts.push_back(directory_ / ("part-" + std::to_string(index)));
      write_file(parts.back(), part(shard));
    }
    const auto merged = app::merge_grid_parts(parts, {}, *context_);
    ASSERT_THAT(merged, IsOk());
    EXPECT_EQ(rendered(*merged), whole) << count << " parts";
  }
}

TEST_F(Repetition, DoesNotDependOnTheNumberOfJobs) {
  const std::string whole = run(request_);
  for (const std::size_t jobs : {1U, 8U}) {
    app::GridCheckRequest request = request_;
    request.jobs = jobs;
    EXPECT_EQ(run(request), whole) << jobs;
  }
}

TEST_F(Repetition, DoesNotDependOnTheInstructionSet) {
  const std::string whole = run(request_);
  for (const std::string& target : quant::cpu_targets()) {
    ASSERT_THAT(quant::force_cpu_target(target), IsOk());
    EXPECT_EQ(run(request_), whole) << target;
  }
  ASSERT_THAT(quant::force_cpu_target(""), IsOk());
}

TEST_F(Repetition, GoesOnFromAJournalThatWasCutOffAnywhere) {
  const std::string whole = run(request_);
  const std::string journal = part(request_);
  const std::size_t first_line = journal.find('\n') + 1;
  request_.resume = directory_ / "journal";
  for (const std::size_t kept : {std::size_t{0}, first_line - 1, first_line, first_line + 1,
                                 journal.size() / 3, journal.size() - 1}) {
    write_file(request_.resume, journal.substr(0, kept));
    EXPECT_EQ(run(request_), whole) << "after " << kept << " bytes";
    const auto kept_journal = report::parse_journal(to_text(read_file(request_.resume)));
    ASSERT_THAT(kept_journal, IsOk());
    EXPECT_EQ(kept_journal->whole_bytes, journal.size());
  }
}

TEST_F(Repetition, ComparesNothingThatTheJournalHas) {
  write_file(directory_ / "journal", part(request_));
  request_.resume = directory_ / "journal";
  observer_.clear();
  static_cast<void>(check(request_));
  for (const auto& step : observer_.steps()) EXPECT_NE(step.stage, "comparing");
}

// Serves a directory until `left` requests were answered, then is not available for a long time.
HttpServer::Handler serving(const TempDir& directory, std::atomic<int>& left) {
  return [&](const HttpRequest& request) {
    if (left.fetch_sub(1) <= 0) {
      return HttpReply{.status = 503, .fields = {{.name = "Retry-After", .value = "86400"}}};
    }
    const fs::path path = directory / request.path().substr(1);
    if (!fs::is_regular_file(path)) return HttpReply{.status = 404};
    return serve_content(request, to_text(read_file(path)));
  };
}

TEST_F(Repetition, KeepsWhatWasDoneWhenTheNetworkIsLost) {
  std::atomic<int> left = 1'000'000;
  const HttpServer server(serving(directory_, left));
  request_.source = server.url("/source/model.safetensors");
  request_.builds = {server.url("/moved/model.safetensors")};
  const std::string whole = run(request_);
  const std::size_t requests = server.requests().size();

  request_.resume = directory_ / "journal";
  left = static_cast<int>(requests * 2 / 3);
  const auto lost = app::grid_check(request_, *context_);
  EXPECT_THAT(lost, Fails(ErrorCode::kUnavailable, HasSubstr("--resume")));
  const auto journal = report::parse_journal(to_text(read_file(request_.resume)));
  ASSERT_THAT(journal, IsOk());
  EXPECT_FALSE(journal->results.empty());

  left = 1'000'000;
  EXPECT_EQ(run(request_), whole);
}

}  // namespace
}  // namespace gridscope::test
