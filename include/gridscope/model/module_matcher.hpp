#pragma once

// Which modules a quantization configuration means: its ignore list and its targets, compiled once
// and asked for every module.

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gridscope/model/name_pattern.hpp"
#include "gridscope/model/quantization.hpp"

namespace gridscope::model {

// What a "Linear" or "Embedding" among the targets means. Told from tensors, since there is no
// model object to ask.
enum class ModuleClass : std::uint8_t { kLinear, kEmbedding, kOther };

// Names are compared in canonical form; patterns are tried on the name as it is and on its
// spelling in every family, since old configurations hold the names of the running model. Const
// members are thread-safe.
class ModuleMatcher {
 public:
  // `config` must outlive the matcher.
  explicit ModuleMatcher(const QuantizationConfig& config);

  [[nodiscard]] bool ignores(std::string_view module) const;

  // The scheme that holds for a module that is not ignored, or null. An exact name goes before a
  // pattern, a pattern before a class, and a scheme without targets holds for what is left.
  [[nodiscard]] const QuantizationConfig::Scheme* scheme_for(std::string_view module,
                                                             ModuleClass kind) const;

  // Patterns with constructs that are not understood; they match nothing.
  [[nodiscard]] std::span<const std::string> not_understood() const { return not_understood_; }

 private:
  using Scheme = QuantizationConfig::Scheme;

  void add_ignored(std::string_view entry);
  void add_pattern(std::string_view entry, Result<NamePattern> pattern);
  void add_target(const Scheme& scheme, std::string_view target);

  const QuantizationConfig& config_;
  std::unordered_set<std::string> ignored_names_;
  std::vector<NamePattern> ignored_patterns_;
  std::vector<std::string> ignored_parts_;  // substrings
  std::unordered_map<std::string, const Scheme*> named_;
  std::vector<std::pair<NamePattern, const Scheme*>> patterned_;
  std::vector<std::string> not_understood_;
};

}  // namespace gridscope::model
