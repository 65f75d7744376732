#include "gridscope/model/weight_matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "gridscope/core/text.hpp"
#include "gridscope/model/absences.hpp"
#include "gridscope/model/canonical_names.hpp"
#include "gridscope/model/gguf_names.hpp"
#include "gridscope/model/norms_before.hpp"
#include "gridscope/model/weight_units.hpp"

// Both sides are taken apart alike, and then units of one name are paired. What is left over is
// offered to the few weights that may stand for another one (a tied head, values that are keys),
// then explained, and what nothing explains is a finding.

namespace gridscope::model {
namespace {

// Vocabularies are padded up to a multiple of 64 to 1024 rows.
constexpr std::uint64_t kMostPaddingRows = 1024;

struct Problem {
  std::string_view code;
  Severity severity = Severity::kError;
  std::string_view of_one;   // after "1 weight "
  std::string_view of_many;  // after "3 weights "
  std::string_view remedy;
};

constexpr Problem kShapes = {
    .code = "SHAPE_MISMATCH",
    .of_one = "has another shape than in the source",
    .of_many = "have another shape than in the source",
    .remedy = "compare a build of this very source; such weights were not compared"};
constexpr Problem kObstacle = {.code = "WEIGHT_NOT_COMPARABLE",
                               .of_one = "cannot be compared",
                               .of_many = "cannot be compared",
                               .remedy = "judge them by other means: they are in no figure"};
constexpr Problem kSourceOnly = {.code = "SOURCE_ONLY",
                                 .of_one = "of the source is not in the build",
                                 .of_many = "of the source are not in the build",
                                 .remedy = "export them too, or compare another source"};
constexpr Problem kBuildOnly = {.code = "BUILD_ONLY",
                                .of_one = "of the build is not in the source",
                                .of_many = "of the build are not in the source",
                                .remedy = "compare the source that the build was made from"};
constexpr Problem kPadded = {.code = "VOCABULARY_PADDED",
                             .severity = Severity::kWarning,
                             .of_one = "has rows that the other side does not have",
                             .of_many = "have rows that the other side does not have",
                             .remedy = "expect padding; the rows that both have were compared"};

// Findings by code: one for all weights with the same problem, the first as the example.
class Problems {
 public:
  void add(const Problem& problem, std::string_view weight, const std::string& example = {}) {
    const auto [at, is_new] = entries_.try_emplace(problem.code);
    Entry& entry = at->second;
    if (is_new) entry = {.problem = &problem, .finding = {}, .example = example};
    entry.finding.add_tensor(weight);
  }

  [[nodiscard]] std::vector<Finding> take() && {
    std::vector<Finding> all;
    for (auto& [code, entry] : entries_) {
      const Problem& problem = *entry.problem;
      const std::uint64_t count = entry.finding.tensor_count;
      Finding& finding = all.emplace_back(std::move(entry.finding));
      finding.code = code;
      finding.severity = problem.severity;
      finding.message = fmt::format("{} {}{}{}", count_of(count, "weight"),
                                    count == 1 ? problem.of_one : problem.of_many,
                                    entry.example.empty() ? "" : ": ", entry.example);
      finding.remedy = problem.remedy;
    }
    return all;
  }

 private:
  struct Entry {
    const Problem* problem = nullptr;  // one of those above
    Finding finding;
    std::string example;
  };

  std::map<std::string_view, Entry> entries_;
};

bool is_gpt_oss(const Checkpoint& checkpoint) {
  const std::string& type = checkpoint.config.model_type;
  if (type == "gpt_oss" || type == "gpt-oss") return true;
  return std::ranges::any_of(checkpoint.modules.modules, [](const Module& m) {
    return m.scheme == Scheme::kGptOssMxfp4 || m.name.ends_with(".mlp.mlp1_weight");
  });
}

// What llama.cpp's converter did to a checkpoint; nothing to one of another kind.
struct GgufChanges {
  bool permutes_heads = false;
  std::string_view architecture = {};

  // Whether in each head of this weight, of queries or keys, rows of the two halves alternate.
  [[nodiscard]] bool alternates(const Weight& weight) const {
    return permutes_heads || alternates_rotary_halves(weight.name);
  }

  explicit GgufChanges(const Checkpoint& checkpoint) {
    if (checkpoint.container != format::Container::kGguf) return;
    architecture = checkpoint.config.model_type;
    permutes_heads = gguf_permutes_heads(architecture);
  }
};

bool rotates(std::string_view canonical) {
  static constexpr std::array<std::string_view, 2> kRotated = {"q_proj", "k_proj"};
  return std::ranges::any_of(kRotated, [&](std::string_view projection) {
    return with_projection(canonical, projection, projection).has_value();
  });
}

bool has_vocabulary_rows(const Weight& weight) {
  return weight.info.role == Role::kEmbedTokens || weight.info.role == Role::kLmHead ||
         weight.info.role == Role::kPerLayerEmbedding;
}

// "[256, 64]", of a part "rows [256, 64] of it".
std::string extent_text(const Weight& weight, const WeightUnit& unit, const Extent& extent) {
  if (unit.label.empty() && !weight.is_flat)
    return fmt::format("[{}]", fmt::join(weight.shape, ", "));
  return fmt::format("[{}, {}]", unit.rows.count, extent.columns);
}

// Whole weights of three dimensions and more may have the same rows and columns in another order.
bool same_dimensions(const Weight& a, const Weight& b) {
  const auto without_ones = [](const Weight& weight) {
    std::vector<std::uint64_t> shape = weight.shape;
    std::erase(shape, 1U);
    return shape;
  };
  const bool exact = a.padding == 0 && b.padding == 0;
  return !exact || without_ones(a) == without_ones(b);
}

class Matcher {
 public:
  Matcher(const Checkpoint& source, const Checkpoint& build, WeightSides sides)
      : source_(source),
        build_(build),
        sides_(std::move(sides)),
        facts_(sharing_facts(source, build)),
        source_gguf_(source),
        build_gguf_(build) {}

  Matching run() && {
    match_units();
    match_tied_head();
    match_values_to_keys();
    explain_leftovers();
    sort_pairs();
    link_norms();
    matching_.findings = std::move(problems_).take();
    return std::move(matching_);
  }

 private:
  using Entry = WeightUnits::value_type;

  struct Named {
    WeightPair pair;
    std::string canonical;
  };

  void match_units() {
    for (const Entry& entry : sides_.build.units) {
      const auto found = sides_.source.units.find(entry.first);
      if (found == sides_.source.units.end()) {
        build_left_.push_back(&entry);
      } else {
        add_pair(*found, entry);
      }
    }
    for (const Entry& entry : sides_.source.units) {
      if (!sides_.build.units.contains(entry.first)) source_left_.push_back(&entry);
    }
  }

  // A build may store the head that the source leaves to its embedding.
  void match_tied_head() {
    const auto is_embedding = [&](const Entry& entry) {
      const Weight& weight = sides_.source.weights[entry.second.weight];
      return weight.info.role == Role::kEmbedTokens && weight.info.part != Part::kMtp;
    };
    const auto embedding = std::ranges::find_if(sides_.source.units, is_embedding);
    if (embedding == sides_.source.units.end()) return;
    std::erase_if(build_left_, [&](const Entry* entry) {
      if (entry->first != "lm_head") return false;
      add_pair(*embedding, *entry);
      return true;
    });
  }

  // Where values are keys a build may store them a second time.
  void match_values_to_keys() {
    std::erase_if(build_left_, [&](const Entry* entry) {
      if (!values_are_keys(facts_, entry->first)) return false;
      const auto name = with_projection(entry->first, "v_proj", "k_proj");
      const auto keys = name ? sides_.source.units.find(*name) : sides_.source.units.end();
      if (keys == sides_.source.units.end()) return false;
      add_pair(*keys, *entry);
      return true;
    });
  }

  void explain_leftovers() {
    const AbsenceRules source_rules(source_, sides_.source.weights, facts_);
    const AbsenceRules build_rules(build_, sides_.build.weights, facts_);
    leave_out(source_left_, sides_.source, build_rules, kSourceOnly, matching_.source_only);
    leave_out(build_left_, sides_.build, source_rules, kBuildOnly, matching_.build_only);
    std::ranges::sort(matching_.absent_by_design, {}, &Absence::name);
  }

  void leave_out(std::span<const Entry* const> left, const WeightSide& side,
                 const AbsenceRules& other, const Problem& problem,
                 std::vector<std::string>& names) {
    for (const Entry* entry : left) {
      const Weight& weight = side.weights[entry->second.weight];
      std::string name = weight.name + entry->second.label;
      if (auto reason = other.explain(weight, entry->first)) {
        matching_.absent_by_design.push_back(
            {.name = std::move(name), .reason = *std::move(reason)});
        continue;
      }
      problems_.add(problem, name);
      names.push_back(std::move(name));
    }
    std::ranges::sort(names);
  }

  // ---- pairs ------------------------------------------------------------------------------------

  void add_pair(const Entry& source, const Entry& build) {
    const Weight& source_weight = sides_.source.weights[source.second.weight];
    const Weight& build_weight = sides_.build.weights[build.second.weight];
    WeightPair pair{.name = build_weight.name + build.second.label,
                    .source_name = source_weight.name + source.second.label,
                    .source = source.second.weight,
                    .build = build.second.weight,
                    .source_rows = source.second.rows,
                    .build_rows = build.second.rows};
    for (const Weight* weight : {&build_weight, &source_weight}) {
      if (weight->obstacle.empty()) continue;
      return refuse(kObstacle, pair, weight->obstacle);
    }
    if (!settle_shape(pair, source.second, build.second)) return;
    add_offsets(pair, build.first);
    if (!put_heads_in_order(pair, build.first)) return;
    auto& pairs = is_quantized(build_weight.spec.scheme) ? quantized_ : plain_;
    pairs.push_back({.pair = std::move(pair), .canonical = build.first});
  }

  void refuse(const Problem& problem, const WeightPair& pair, std::string_view reason) {
    problems_.add(problem, pair.name, fmt::format("{}: {}", quote(pair.name), reason));
  }

  // Rows and columns that both sides have, or a problem.
  bool settle_shape(WeightPair& pair, const WeightUnit& source, const WeightUnit& build) {
    const Weight& source_weight = sides_.source.weights[pair.source];
    const Weight& build_weight = sides_.build.weights[pair.build];
    const Extent& from = sides_.source.extents[pair.source];
    const Extent& to = sides_.build.extents[pair.build];
    if ((source_weight.is_flat && from.columns == 0) || (build_weight.is_flat && to.columns == 0)) {
      refuse(kObstacle, pair, "its header does not tell its shape, and no counterpart does");
      return false;
    }
    const std::uint64_t least = std::max(from.columns - std::min(from.padding, from.columns),
                                         to.columns - std::min(to.padding, to.columns));
    pair.columns = std::min(from.columns, to.columns);
    const std::uint64_t more = std::max(pair.source_rows.count, pair.build_rows.count);
    const std::uint64_t rows = std::min(pair.source_rows.count, pair.build_rows.count);
    const bool whole = source.label.empty() && build.label.empty();
    const bool padded = more != rows && more - rows <= kMostPaddingRows && whole &&
                        has_vocabulary_rows(source_weight);
    const bool same_rows = rows == more && (!whole || same_dimensions(source_weight, build_weight));
    const auto shapes = [&] {
      return fmt::format("{} is {}, {} of the source {}", quote(pair.name),
                         extent_text(build_weight, build, to), quote(pair.source_name),
                         extent_text(source_weight, source, from));
    };
    if (pair.columns < least || (!padded && !same_rows)) {
      problems_.add(kShapes, pair.name, shapes());
      return false;
    }
    if (padded) problems_.add(kPadded, pair.name, shapes());
    pair.source_rows.count = pair.build_rows.count = rows;
    return true;
  }

  // What llama.cpp's converter has added.
  void add_offsets(WeightPair& pair, std::string_view canonical) const {
    // Configurations call "gemma3_text" what GGUF calls "gemma3".
    const std::string_view type = source_.config.model_type;
    pair.norm_offset = gguf_norm_offset(type.substr(0, type.find('_')), canonical);
    pair.build_offset = gguf_norm_offset(build_gguf_.architecture, canonical) -
                        gguf_norm_offset(source_gguf_.architecture, canonical);
  }

  // Turns rows back where one side has the halves of its heads alternate.
  bool put_heads_in_order(WeightPair& pair, std::string_view canonical) {
    if (!rotates(canonical)) return true;
    const bool source_alternates = source_gguf_.alternates(sides_.source.weights[pair.source]);
    const bool build_alternates = build_gguf_.alternates(sides_.build.weights[pair.build]);
    if (source_alternates == build_alternates) return true;
    RowSelection& permuted = build_alternates ? pair.build_rows : pair.source_rows;
    const bool sees = sides_.build.weights[pair.build].info.part == Part::kVisionTower;
    const auto head = sees ? &ModelConfig::vision_head_dim : &ModelConfig::head_dim;
    const auto& said = source_.config.*head ? source_.config.*head : build_.config.*head;
    const std::uint64_t size = said.value_or(0);
    if (size == 0 || size % 2 != 0 || permuted.count % size != 0) {
      refuse(kObstacle, pair,
             "its rows are permuted within each head, and no configuration tells a head's size");
      return false;
    }
    permuted.rotary_head = size;
    return true;
  }

  // ---- the end ----------------------------------------------------------------------------------

  void sort_pairs() {
    for (auto* pairs : {&quantized_, &plain_}) {
      std::ranges::sort(*pairs, {},
                        [](const Named& n) { return std::tie(n.pair.name, n.canonical); });
    }
  }

  void link_norms() {
    std::unordered_map<std::string_view, std::uint32_t> norms;
    for (std::uint32_t i = 0; i < plain_.size(); ++i) norms.emplace(plain_[i].canonical, i);
    for (auto* pairs : {&quantized_, &plain_}) {
      for (Named& named : *pairs) named.pair.norm = norm_of(named.canonical, norms);
    }
    for (Named& named : quantized_) matching_.quantized.push_back(std::move(named.pair));
    for (Named& named : plain_) matching_.plain.push_back(std::move(named.pair));
  }

  // A layer without a norm at its start has norms only after its blocks.
  static std::optional<std::uint32_t> norm_of(
      std::string_view canonical,
      const std::unordered_map<std::string_view, std::uint32_t>& norms) {
    const std::string_view layer = layer_prefix(canonical);
    if (!layer.empty() && !norms.contains(std::string(layer) + "input_layernorm")) return {};
    for (const std::string& name : norms_before(canonical)) {
      const auto found = norms.find(name);
      if (found != norms.end()) return found->second;
    }
    return std::nullopt;
  }

  const Checkpoint& source_;
  const Checkpoint& build_;
  WeightSides sides_;
  SharingFacts facts_;
  GgufChanges source_gguf_;
  GgufChanges build_gguf_;
  std::vector<const Entry*> source_left_;
  std::vector<const Entry*> build_left_;
  std::vector<Named> quantized_;
  std::vector<Named> plain_;
  Problems problems_;
  Matching matching_;
};

}  // namespace

std::uint64_t RowSelection::row(std::uint64_t i) const {
  if (rotary_head != 0) {
    const std::uint64_t half = rotary_head / 2;
    const std::uint64_t within = i % rotary_head;
    i += 2 * (within % half) + within / half - within;
  }
  return first + i * stride;
}

Result<Matching> match_weights(const Checkpoint& source, std::span<const Weight> source_weights,
                               const Checkpoint& build, std::span<const Weight> build_weights) {
  const GateUpOrder order =
      is_gpt_oss(source) || is_gpt_oss(build) ? GateUpOrder::kAlternating : GateUpOrder::kHalves;
  GRIDSCOPE_TRY(WeightSides sides, split_alike(source_weights, build_weights, order));
  return Matcher(source, build, std::move(sides)).run();
}

}  // namespace gridscope::model
