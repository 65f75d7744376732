#include "gridscope/analysis/scale_ratios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace gridscope::analysis {
namespace {

constexpr const char* kAllowed = "1";

}  // namespace

void ScaleRatios::add(double ratio, std::uint64_t count) {
  const double bin = ratio * kBinsPerUnit;
  const bool in_range = bin < static_cast<double>(kBins - 1);  // false for NaN
  bins_[in_range ? static_cast<std::size_t>(bin) : kBins - 1] += count;
}

void ScaleRatios::add(const ScaleRatios& more) {
  allowed_ += more.allowed_;
  std::ranges::transform(bins_, more.bins_, bins_.begin(), std::plus());
}

std::string ScaleRatios::name_of(std::size_t bin) {
  const double edge = static_cast<double>(bin) / kBinsPerUnit;
  return fmt::format("{}{:g}{}", bin + 1 == kBins ? ">=" : "", edge, edge == 1.0 ? "+" : "");
}

std::map<std::string, std::uint64_t> ScaleRatios::named() const {
  std::map<std::string, std::uint64_t> counts;
  if (allowed_ > 0) counts[kAllowed] = allowed_;
  for (std::size_t i = 0; i < kBins; ++i) {
    if (bins_[i] > 0) counts[name_of(i)] = bins_[i];
  }
  return counts;
}

std::optional<ScaleRatios> ScaleRatios::from_named(
    const std::map<std::string, std::uint64_t>& counts) {
  ScaleRatios ratios;
  std::size_t found = 0;
  const auto take = [&](const std::string& name, std::uint64_t& count) {
    const auto named = counts.find(name);
    if (named == counts.end()) return;
    count = named->second;
    ++found;
  };
  take(kAllowed, ratios.allowed_);
  for (std::size_t i = 0; i < kBins; ++i) take(name_of(i), ratios.bins_[i]);
  if (found < counts.size()) return std::nullopt;
  return ratios;
}

}  // namespace gridscope::analysis
