#include "gridscope/model/module_matcher.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "gridscope/model/names.hpp"

namespace gridscope::model {
namespace {

constexpr std::string_view kRegex = "re:";

// How a method reads the entries of its ignore list.
enum class Reading : std::uint8_t {
  kNames,       // exact names; "re:" regular expressions
  kSubstrings,  // anywhere in the name
  kGlobs,       // shell patterns; without a wildcard also a leading part of the name
  kDotted,      // a run of whole segments: "mlp.gate" means every module of that name
};

Reading reading_of(std::string_view method) {
  if (method == "compressed-tensors" || method == "gptq" || method == "gptqmodel") {
    return Reading::kNames;
  }
  if (method == "awq") return Reading::kSubstrings;
  return method.starts_with("modelopt") ? Reading::kGlobs : Reading::kDotted;
}

bool is_glob(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

// Every spelling of a module: as it is, in canonical form, and with the prefixes of the families.
std::vector<std::string> spellings(std::string_view module, const std::string& canonical) {
  std::vector<std::string> all = {std::string(module), canonical};
  if (canonical == "lm_head") {
    all.push_back("language_model." + canonical);
    return all;
  }
  all.push_back("model." + canonical);
  const Part part = classify_name(module).part;
  if (part == Part::kVisionTower || part == Part::kAudioTower) return all;
  for (const char* prefix : {"model.language_model.", "language_model.model."}) {
    all.push_back(prefix + canonical);
  }
  return all;
}

bool any_matches(const NamePattern& pattern, std::span<const std::string> names) {
  return std::ranges::any_of(names, [&](const std::string& n) { return pattern.matches(n); });
}

// Whether `run` stands in `name` between dots or ends.
bool has_dotted_run(std::string_view name, std::string_view run) {
  for (std::size_t at = name.find(run); at != std::string_view::npos; at = name.find(run, at + 1)) {
    const std::size_t end = at + run.size();
    const bool starts = at == 0 || name[at - 1] == '.';
    if (starts && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

bool is_class_name(std::string_view target, ModuleClass kind) {
  return (kind == ModuleClass::kLinear && target == "Linear") ||
         (kind == ModuleClass::kEmbedding && target == "Embedding");
}

}  // namespace

ModuleMatcher::ModuleMatcher(const QuantizationConfig& config) : config_(config) {
  for (const std::string& entry : config.ignore) add_ignored(entry);
  for (const Scheme& scheme : config.schemes) {
    for (const std::string& target : scheme.targets) add_target(scheme, target);
  }
}

void ModuleMatcher::add_pattern(std::string_view entry, Result<NamePattern> pattern) {
  if (pattern) {
    ignored_patterns_.push_back(*std::move(pattern));
  } else {
    not_understood_.emplace_back(entry);
  }
}

void ModuleMatcher::add_ignored(std::string_view entry) {
  const Reading reading = reading_of(config_.method);
  if (reading == Reading::kSubstrings) {
    ignored_parts_.emplace_back(entry);
  } else if (reading == Reading::kNames && entry.starts_with(kRegex)) {
    add_pattern(entry, NamePattern::regex(entry.substr(kRegex.size())));
  } else if (reading != Reading::kNames && is_glob(entry)) {
    add_pattern(entry, NamePattern::glob(entry));
    // "layers.*.self_attn" and "layers.0*" mean what lies below such a module too.
    add_pattern(entry, NamePattern::glob(std::string(entry) + ".*"));
  } else {
    ignored_names_.insert(canonical_module(entry));
    if (reading != Reading::kNames) ignored_parts_.push_back(canonical_module(entry));
  }
}

void ModuleMatcher::add_target(const Scheme& scheme, std::string_view target) {
  if (!target.starts_with(kRegex)) {
    named_.emplace(canonical_module(target), &scheme);
    return;
  }
  auto pattern = NamePattern::regex(target.substr(kRegex.size()));
  if (pattern) {
    patterned_.emplace_back(*std::move(pattern), &scheme);
  } else {
    not_understood_.emplace_back(target);
  }
}

bool ModuleMatcher::ignores(std::string_view module) const {
  if (config_.ignore.empty()) return false;
  const std::string canonical = canonical_module(module);
  if (ignored_names_.contains(canonical)) return true;
  if (ignored_patterns_.empty() && ignored_parts_.empty()) return false;
  const std::vector<std::string> names = spellings(module, canonical);
  const bool dotted = reading_of(config_.method) == Reading::kDotted;
  const auto has_part = [&](const std::string& part) {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return dotted ? has_dotted_run(name, part) : name.find(part) != std::string::npos;
    });
  };
  return std::ranges::any_of(ignored_parts_, has_part) ||
         std::ranges::any_of(ignored_patterns_, [&](const NamePattern& pattern) {
           return any_matches(pattern, names);
         });
}

const QuantizationConfig::Scheme* ModuleMatcher::scheme_for(std::string_view module,
                                                            ModuleClass kind) const {
  if (!named_.empty() || !patterned_.empty()) {
    const std::string canonical = canonical_module(module);
    if (const auto found = named_.find(canonical); found != named_.end()) return found->second;
    if (!patterned_.empty()) {
      const std::vector<std::string> names = spellings(module, canonical);
      for (const auto& [pattern, scheme] : patterned_) {
        if (any_matches(pattern, names)) return scheme;
      }
    }
  }
  for (const Scheme& scheme : config_.schemes) {
    const auto names_class = [&](const std::string& t) { return is_class_name(t, kind); };
    if (scheme.targets.empty() || std::ranges::any_of(scheme.targets, names_class)) return &scheme;
  }
  return nullptr;
}

}  // namespace gridscope::model
