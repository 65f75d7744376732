// The idea: a sample must be the same wherever and however often it is drawn, and must not leave
// out a layer or a role as long as there is room. So pairs are put into one list per layer and role
// of the source, each in the order of a hash of the source's name, and dealt out of these lists in
// turn: what a build calls its weights has no say.

#include "gridscope/analysis/grid_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>

#include "gridscope/analysis/tile_plan.hpp"
#include "gridscope/core/finding.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/model/name_pattern.hpp"

namespace gridscope::analysis {
namespace {

using model::Weight;
using model::WeightPair;

// FNV-1a, and a finalizer so that names which differ in one digit lie far apart.
class StableHash {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    state_ = (state_ ^ 0xffU) * 0x100000001b3ULL;  // a separator that no UTF-8 text holds
  }
  void add(std::uint64_t number) { add(fmt::format("{}", number)); }

  [[nodiscard]] std::uint64_t value() const {
    std::uint64_t mixed = state_;
    for (const std::uint64_t factor : {0xff51afd7ed558ccdULL, 0xc4ceb9fe1a85ec53ULL}) {
      mixed = (mixed ^ (mixed >> 33U)) * factor;
    }
    return mixed ^ (mixed >> 33U);
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

std::uint64_t hash_of(std::string_view name) {
  StableHash hash;
  hash.add(name);
  return hash.value();
}

const std::vector<WeightPair>& pairs_of(const model::Matching& matching, GridItem::Kind kind) {
  return kind == GridItem::Kind::kQuantized ? matching.quantized : matching.plain;
}

// ---- selection ----------------------------------------------------------------------------------

Result<std::vector<model::NamePattern>> compile(const std::vector<std::string>& globs) {
  std::vector<model::NamePattern> patterns;
  for (const std::string& glob : globs) {
    auto pattern = model::NamePattern::glob(glob);
    if (!pattern) {
      return fail(ErrorCode::kInvalidArgument, "--tensor: " + pattern.error().message,
                  "use *, ? and [...] as a shell does");
    }
    patterns.push_back(*std::move(pattern));
  }
  return patterns;
}

// What inspection calls the tensor that lies there; "" for none. Tensors are in order of file and
// offset, and those without bytes hold nothing.
std::string_view tensor_at(const model::Checkpoint& checkpoint, const model::StoredPlace& place) {
  const auto start_of = [&](std::uint32_t i) {
    return std::pair(checkpoint.file_of[i], checkpoint.tensors[i].offset);
  };
  const auto count = static_cast<std::uint32_t>(checkpoint.tensors.size());
  const auto numbers = std::views::iota(0U, count);
  const auto later =
      std::ranges::upper_bound(numbers, std::pair(place.file, place.offset), {}, start_of);
  auto after = static_cast<std::size_t>(later - numbers.begin());
  while (after > 0 && checkpoint.tensors[after - 1].bytes == 0) --after;
  return after == 0 ? std::string_view() : checkpoint.tensors[after - 1].name;
}

// A weight may be named by itself or by any tensor that it is stored in, of a stack too.
bool names_weight(const model::NamePattern& pattern, const GridSide& side, std::uint32_t number) {
  const Weight& weight = side.weights[number];
  return pattern.matches(weight.name) || std::ranges::any_of(weight.places, [&](const auto& place) {
           return place && pattern.matches(tensor_at(*side.checkpoint, *place));
         });
}

// How many of `count` pairs a sample takes: at least one where there are any.
std::uint64_t sample_size(const GridSelection& selection, std::uint64_t count) {
  if (selection.sample_count) return std::min(*selection.sample_count, count);
  if (!selection.sample_fraction) return count;
  const double wanted = std::ceil(*selection.sample_fraction * static_cast<double>(count));
  return std::min(static_cast<std::uint64_t>(std::max(wanted, 1.0)), count);
}

using Indices = std::vector<std::uint32_t>;

// The lists to deal from, in an order of their own hash.
std::vector<Indices> strata_of(const Indices& chosen, const std::vector<WeightPair>& pairs,
                               const std::vector<Weight>& sources) {
  std::map<std::pair<std::uint64_t, std::string>, Indices> strata;
  for (const std::uint32_t i : chosen) {
    const model::NameInfo& info = sources[pairs[i].source].info;
    std::string key = fmt::format("{}/{}/{}", model::part_key(info.part), info.layer.value_or(0),
                                  model::role_key(info.role));
    const std::uint64_t order = hash_of(key);
    strata[{order, std::move(key)}].push_back(i);
  }
  std::vector<Indices> lists;
  for (auto& [key, list] : strata) {
    std::ranges::sort(
        list, {}, [&](std::uint32_t i) { return std::tuple(hash_of(pairs[i].source_name), i); });
    lists.push_back(std::move(list));
  }
  return lists;
}

Indices sample(const Indices& chosen, std::uint64_t size, const std::vector<WeightPair>& pairs,
               const std::vector<Weight>& sources) {
  if (size == chosen.size()) return chosen;
  const std::vector<Indices> lists = strata_of(chosen, pairs, sources);
  Indices taken;
  for (std::size_t round = 0; taken.size() < size; ++round) {
    for (const Indices& list : lists) {
      if (round < list.size() && taken.size() < size) taken.push_back(list[round]);
    }
  }
  std::ranges::sort(taken);
  return taken;
}

std::string describe_globs(const std::vector<std::string>& globs) {
  std::vector<std::string> quoted;
  quoted.reserve(globs.size());
  for (const std::string& glob : globs) quoted.push_back(quote(glob));
  return fmt::format("weights named {}", fmt::join(quoted, " or "));
}

// A build of which nothing is compared would look exact.
tl::unexpected<Error> nothing_in_common(const GridBuildSide& build) {
  const std::string name = quote(build.side.reference);
  const auto explains = [](const Finding& finding) {
    return finding.code == "SHAPE_MISMATCH" || finding.code == "WEIGHT_NOT_COMPARABLE";
  };
  std::vector<std::string_view> reasons;
  for (const Finding& finding : build.matching.findings) {
    if (explains(finding)) reasons.push_back(finding.message);
  }
  constexpr std::string_view kRemedy = "check that the build was made from this source";
  if (reasons.empty()) {
    return fail(ErrorCode::kInvalidArgument, name + " has no weight in common with the source",
                std::string(kRemedy));
  }
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{} has no weight that can be compared with the source: {}", name,
                          fmt::join(reasons, "; ")),
              std::string(kRemedy));
}

// Chooses a plan's items, build by build, and keeps count of what is left out.
class Selector {
 public:
  Selector(const GridSelection& selection, std::vector<model::NamePattern> patterns, GridPlan& plan)
      : selection_(selection), patterns_(std::move(patterns)), plan_(plan) {}

  Status run() {
    GRIDSCOPE_CHECK(check_globs());
    for (std::uint32_t build = 0; build < plan_.builds.size(); ++build) {
      GRIDSCOPE_CHECK(add_items(build));
    }
    plan_.selection = describe();
    return {};
  }

 private:
  // Pairs of one kind in all builds.
  struct Count {
    std::string_view what;
    std::uint64_t matched = 0;
    std::uint64_t named = 0;  // by the globs
    std::uint64_t taken = 0;
  };

  [[nodiscard]] bool names(const model::NamePattern& pattern, const GridSide& build,
                           const WeightPair& pair) const {
    return pattern.matches(pair.name) || pattern.matches(pair.source_name) ||
           names_weight(pattern, build, pair.build) ||
           names_weight(pattern, plan_.source, pair.source);
  }

  [[nodiscard]] bool is_named(const GridSide& build, const WeightPair& pair) const {
    return patterns_.empty() || std::ranges::any_of(patterns_, [&](const auto& pattern) {
             return names(pattern, build, pair);
           });
  }

  // A glob without effect is a slip of the pen, and would narrow the check without a word.
  [[nodiscard]] Status check_globs() const {
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      const auto is_used = [&](const GridBuildSide& build) {
        const auto matches = [&](const WeightPair& pair) {
          return names(patterns_[i], build.side, pair);
        };
        return std::ranges::any_of(build.matching.quantized, matches) ||
               std::ranges::any_of(build.matching.plain, matches);
      };
      if (std::ranges::any_of(plan_.builds, is_used)) continue;
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("--tensor: no weight that can be compared is named {}",
                              quote(selection_.globs[i])),
                  "see the names with gridscope inspect --tensors");
    }
    return {};
  }

  Status add_items(std::uint32_t build) {
    const GridBuildSide& side = plan_.builds[build];
    const std::size_t before = plan_.items.size();
    for (const auto kind : {GridItem::Kind::kQuantized, GridItem::Kind::kPlain}) {
      const std::vector<WeightPair>& pairs = pairs_of(side.matching, kind);
      Indices chosen(pairs.size());
      std::iota(chosen.begin(), chosen.end(), 0U);
      std::erase_if(chosen, [&](std::uint32_t i) { return !is_named(side.side, pairs[i]); });
      const std::uint64_t size = sample_size(selection_, chosen.size());
      for (const std::uint32_t pair : sample(chosen, size, pairs, plan_.source.weights)) {
        plan_.items.push_back({.build = build, .kind = kind, .pair = pair});
      }
      Count& count = kind == GridItem::Kind::kQuantized ? quantized_ : plain_;
      count.matched += pairs.size();
      count.named += chosen.size();
      count.taken += size;
    }
    if (plan_.items.size() > before) return {};
    if (selection_.globs.empty()) return nothing_in_common(side);
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("nothing is left to compare of {}: {}", quote(side.side.reference),
                            describe_globs(selection_.globs)),
                "see the names with gridscope inspect --tensors");
  }

  // By what was taken: a sample or a glob may well take everything.
  [[nodiscard]] std::string describe() const {
    std::vector<std::string> parts;
    if (quantized_.named + plain_.named < quantized_.matched + plain_.matched) {
      parts.push_back(describe_globs(selection_.globs));
    }
    if (quantized_.taken + plain_.taken < quantized_.named + plain_.named) {
      parts.push_back(describe_sample());
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  [[nodiscard]] std::string describe_sample() const {
    std::vector<std::string> parts;
    for (const Count& count : {quantized_, plain_}) {
      if (count.named == 0) continue;
      parts.push_back(
          fmt::format("{} of {}", with_thousands(count.taken), count_of(count.named, count.what)));
    }
    return fmt::format("a sample of {}{}, spread over layers and roles", fmt::join(parts, " and "),
                       plan_.builds.size() > 1 ? " of all builds" : "");
  }

  const GridSelection& selection_;
  std::vector<model::NamePattern> patterns_;
  GridPlan& plan_;
  Count quantized_ = {.what = "quantized weight"};
  Count plain_ = {.what = "plain weight"};
};

// ---- fingerprint --------------------------------------------------------------------------------

void add_side(StableHash& hash, const GridSide& side) {
  hash.add(side.reference);
  hash.add(side.checkpoint->repository.commit);
  for (const model::CheckpointFile& file : side.checkpoint->files) {
    hash.add(file.path);
    hash.add(file.bytes);
    if (file.source != nullptr) hash.add(file.source->identity().version);
  }
}

// What configurations add to the tensors, and matching to the names.
void add_reading(StableHash& hash, const quant::WeightSpec& spec, const model::RowSelection& rows) {
  const auto flag = [](const std::optional<bool>& set) { return set ? (*set ? 1U : 0U) : 2U; };
  hash.add(quant::scheme_key(spec.scheme));
  hash.add(fmt::format("{} {} {} {} {} {}", spec.bits, spec.group_size, spec.block[0],
                       spec.block[1], flag(spec.symmetric), flag(spec.act_order)));
  hash.add(spec.format);
  hash.add(fmt::format("{} {} {} {} {}", static_cast<int>(spec.gptq_zeros),
                       static_cast<int>(spec.gptq_packing), static_cast<int>(spec.ct_packing),
                       static_cast<int>(spec.scale_use), static_cast<int>(spec.order)));
  hash.add(fmt::format("{} {} {} {}", rows.first, rows.count, rows.stride, rows.rotary_head));
}

void add_item(StableHash& hash, const GridPlan& plan, const GridItem& item) {
  const WeightPair& pair = pair_of(plan, item);
  hash.add(item.build);
  hash.add(pair.name);
  hash.add(pair.source_name);
  hash.add(fmt::format("{} {} {} {}", pair.columns, pair.build_offset, pair.norm_offset,
                       pair.norm.has_value()));
  add_reading(hash, plan.source.weights[pair.source].spec, pair.source_rows);
  add_reading(hash, plan.builds[item.build].side.weights[pair.build].spec, pair.build_rows);
}

std::string fingerprint_of(const GridPlan& plan) {
  StableHash hash;
  add_side(hash, plan.source);
  for (const GridBuildSide& build : plan.builds) add_side(hash, build.side);
  hash.add(plan.selection);
  for (const GridItem& item : plan.items) add_item(hash, plan, item);
  return fmt::format("{:016x}", hash.value());
}

TilePlan tiles_of(const GridPlan& plan, const GridItem& item) {
  const WeightPair& pair = pair_of(plan, item);
  return plan_tiles(plan.source.weights[pair.source],
                    plan.builds[item.build].side.weights[pair.build], pair);
}

Status check_selection(const GridSelection& selection) {
  const bool none = selection.sample_count == 0U;
  const double fraction = selection.sample_fraction.value_or(1.0);
  if (!none && fraction > 0.0 && fraction <= 1.0) return {};
  return fail(ErrorCode::kInvalidArgument, "a sample of no weights, or of more than all",
              "give a count from 1, or a fraction above 0 and at most 1");
}

}  // namespace

const WeightPair& pair_of(const GridPlan& plan, const GridItem& item) {
  return pairs_of(plan.builds[item.build].matching, item.kind)[item.pair];
}

Result<GridPlan> plan_grid_check(GridSide source, std::vector<GridSide> builds,
                                 const GridSelection& selection) {
  GRIDSCOPE_CHECK(check_selection(selection));
  GRIDSCOPE_TRY(auto patterns, compile(selection.globs));
  GridPlan plan{.source = std::move(source), .builds = {}, .items = {}, .fingerprint = {}};
  for (GridSide& side : builds) {
    GRIDSCOPE_TRY(auto matching, model::match_weights(*plan.source.checkpoint, plan.source.weights,
                                                      *side.checkpoint, side.weights));
    plan.builds.push_back({.side = std::move(side), .matching = std::move(matching)});
  }
  GRIDSCOPE_CHECK(Selector(selection, std::move(patterns), plan).run());
  plan.fingerprint = fingerprint_of(plan);
  return plan;
}

std::vector<std::uint32_t> items_of(const GridPlan& plan, Shard shard) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_size;
  for (std::uint32_t i = 0; i < plan.items.size(); ++i) {
    const TilePlan tiles = tiles_of(plan, plan.items[i]);
    by_size.emplace_back(tiles.rows * tiles.bytes_per_row, i);
  }
  std::ranges::sort(by_size, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  // The lightest shard on top, of several the first. More of them than items would stay empty.
  using Load = std::pair<std::uint64_t, std::uint64_t>;  // bytes, shard
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  const auto most = std::min<std::uint64_t>(shard.count, by_size.size());
  for (std::uint64_t index = 1; index <= most; ++index) loads.emplace(0, index);
  std::vector<std::uint32_t> items;
  for (const auto& [bytes, item] : by_size) {
    const auto [load, index] = loads.top();
    loads.pop();
    loads.emplace(load + bytes, index);
    if (index == shard.index) items.push_back(item);
  }
  std::ranges::sort(items);
  return items;
}

GridCost cost_of(const GridPlan& plan, std::span<const std::uint32_t> items) {
  GridCost cost;
  for (const std::uint32_t index : items) {
    const GridItem& item = plan.items[index];
    const WeightPair& pair = pair_of(plan, item);
    const TilePlan tiles = tiles_of(plan, item);
    ++cost.tensors;
    cost.weights += tiles.rows * pair.columns;
    cost.bytes += tiles.rows * tiles.bytes_per_row;
    cost.tile_reads += tiles.tiles() * 2;
  }
  return cost;
}

}  // namespace gridscope::analysis
