#pragma once

// A tiny model on disk, builds beside it, and grid checks of them.

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/support.hpp"
#include "gridscope/app/grid_check.hpp"
#include "support/fakes.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny_gemma.hpp"

namespace gridscope::test {

class GridCheckWorld : public ::testing::Test {
 protected:
  GridCheckWorld() : context_(app::Context::make(app::settings_with({}), observer_).value()) {}

  [[nodiscard]] std::string write(const TinyFile& file, const std::string& name) const {
    return file.write(directory_ / name);
  }
  [[nodiscard]] std::string source() const { return write(tiny_source(model_), "source"); }

  [[nodiscard]] analysis::GridReport check(const app::GridCheckRequest& request) {
    auto report = app::grid_check(request, *context_);
    EXPECT_THAT(report, IsOk());
    return report ? *std::move(report) : analysis::GridReport();
  }
  // One build against the source.
  [[nodiscard]] analysis::GridReport check(const TinyFile& build) {
    analysis::GridReport report =
        check({.source = source(), .builds = {write(build, "build")}, .jobs = 2});
    if (report.builds.empty()) report.builds.emplace_back();
    return report;
  }

  TempDir directory_;
  TinyGemma model_ = make_tiny_gemma();
  CollectingObserver observer_;
  std::unique_ptr<app::Context> context_;
};

inline const Finding* find_finding(const analysis::GridReport& report, std::string_view code) {
  const auto found = std::ranges::find(report.findings, code, &Finding::code);
  return found == report.findings.end() ? nullptr : &*found;
}

inline const analysis::GridTensor* find_tensor(const analysis::GridBuild& build,
                                               std::string_view name) {
  const auto found = std::ranges::find(build.tensors, name, &analysis::GridTensor::name);
  return found == build.tensors.end() ? nullptr : &*found;
}

// The names of the tensors with that verdict.
inline std::vector<std::string> tensors_with(const analysis::GridBuild& build,
                                             analysis::Verdict verdict) {
  std::vector<std::string> names;
  for (const analysis::GridTensor& tensor : build.tensors) {
    if (tensor.verdict == verdict) names.push_back(tensor.name);
  }
  return names;
}

}  // namespace gridscope::test
