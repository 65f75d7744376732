#pragma once

// How the steps of a build compare with those of its source, counted in bins.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gridscope::analysis {

class ScaleRatios {
 public:
  // Steps that the source's values allow.
  void add_allowed(std::uint64_t count = 1) { allowed_ += count; }
  // |build step / source step| of others. One that is no number counts as the largest.
  void add(double ratio, std::uint64_t count = 1);
  void add(const ScaleRatios& more);

  [[nodiscard]] bool is_empty() const { return *this == ScaleRatios(); }

  // The counts that are not 0 by what reports call them: "1" for steps that are allowed, else the
  // lower edge of a bin; "1+" for the one that begins at 1, ">=4" for the last one.
  [[nodiscard]] std::map<std::string, std::uint64_t> named() const;
  // The same back, or nothing for names that are not of these.
  [[nodiscard]] static std::optional<ScaleRatios> from_named(
      const std::map<std::string, std::uint64_t>& counts);

  friend bool operator==(const ScaleRatios&, const ScaleRatios&) = default;

 private:
  static constexpr std::size_t kBinsPerUnit = 16;
  static constexpr std::size_t kHighest = 4;
  static constexpr std::size_t kBins = kBinsPerUnit * kHighest + 1;

  [[nodiscard]] static std::string name_of(std::size_t bin);

  std::uint64_t allowed_ = 0;
  std::array<std::uint64_t, kBins> bins_ = {};
};

}  // namespace gridscope::analysis
