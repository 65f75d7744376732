#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "gridscope/analysis/grid_check.hpp"
#include "gridscope/analysis/inspection.hpp"
#include "gridscope/analysis/verdict.hpp"
#include "gridscope/core/text.hpp"

namespace gridscope::analysis {
namespace {

// The value that most weights have.
template <typename Key>
Key most_common(const std::map<Key, std::uint64_t>& counts) {
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? Key{} : most->first;
}

struct Kind {
  std::string_view code;
  Severity severity;
  std::string_view what;  // after "3 tensors with "
  std::string_view remedy;
};

constexpr Kind kCorrupt = {"WEIGHT_CORRUPT", Severity::kError,
                           "codes that cannot be decoded, values that are no numbers, or groups "
                           "that are dead where the source lives",
                           "make the build again"};
constexpr Kind kUnsupported = {"WEIGHT_UNSUPPORTED", Severity::kError,
                               "a layout that no decoder knows, which leaves them unchecked",
                               "check the others with --tensor, or a build in another format"};
constexpr Kind kDiffers = {"WEIGHT_DIFFERS", Severity::kError,
                           "values too far from the source's to be a build of them",
                           "check that the build was made from this source, and that no tensors "
                           "were exchanged, transposed or shifted"};
constexpr Kind kMoved = {"LEVELS_MOVED", Severity::kNote,
                         "weights on other levels than the source's",
                         "repack the source's own levels and scales to keep its grid"};
constexpr Kind kShifted = {"LEVELS_SHIFTED", Severity::kError,
                           "weights that all stand as many levels off the source's",
                           "check whether its zero points are stored, or labelled, one off, as "
                           "between the two versions of GPTQ"};
constexpr Kind kSmoothed = {
    "SMOOTHED", Severity::kNote,
    "columns or rows scaled against the source, as AWQ and SmoothQuant do",
    "the figures after undoing the scale tell what rounding moved; only norms were checked for its "
    "inverse, not the layers before or after"};
constexpr Kind kNotCompensated = {
    "SCALE_NOT_COMPENSATED", Severity::kError,
    "columns scaled against the source, although the norm before them was not scaled in return",
    "scale the norm as well, or take weights and norms from one export"};
constexpr Kind kSourceNotFinite = {"SOURCE_NOT_FINITE", Severity::kWarning,
                                   "values that are no numbers in the source",
                                   "such weights count in no error figure; look at the source"};
constexpr Kind kNormUnchecked = {"NORM_UNCHECKED", Severity::kWarning,
                                 "values that are not the source's, which scaled weights would "
                                 "explain; those were not compared",
                                 "compare the weights that read these norms, too"};
constexpr Kind kPlainDiffers = {"PLAIN_DIFFERS", Severity::kError,
                                "values that were left unquantized but are not the source's",
                                "find out which step of the export edited them"};
constexpr Kind kNormSmoothed = {"NORM_SMOOTHED", Severity::kNote,
                                "a scale taken out that went into the weights after the norm",
                                "nothing is wrong with that; rounding of the norms costs little"};

// Whether two selections of one weight's rows share a row. Rotation within heads leaves the set of
// rows as it is.
bool overlap(const model::RowSelection& a, const model::RowSelection& b) {
  const auto last = [](const model::RowSelection& rows) {
    return rows.first + (rows.count - 1) * rows.stride;
  };
  if (last(a) < b.first || last(b) < a.first) return false;
  return a.stride != b.stride || a.first % a.stride == b.first % b.stride;
}

class Assembly {
 public:
  Assembly(const GridPlan& plan, const GridResults& results) : plan_(plan), results_(results) {}

  Result<GridReport> run() {
    report_.source = plan_.source.reference;
    report_.source_commit = plan_.source.checkpoint->repository.commit;
    report_.selection = plan_.selection;
    add_loading(plan_.source);
    for (const GridBuildSide& build : plan_.builds) add_loading(build.side);
    for (std::uint32_t b = 0; b < plan_.builds.size(); ++b) report_.builds.push_back(start(b));
    for (std::uint32_t i = 0; i < plan_.items.size(); ++i) {
      const auto found = results_.find(i);
      if (found == results_.end()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("the result for {} is missing", quote(pair_of(plan_, plan_.items[i]).name)),
            "give the parts of all shards");
      }
      take(plan_.items[i], found->second);
    }
    for (std::uint32_t b = 0; b < plan_.builds.size(); ++b) conclude(b);
    count_source_grids();
    sort_findings(report_.findings);
    add_reads();
    return std::move(report_);
  }

 private:
  // The grid of some rows of a source weight, as one item found it.
  struct Part {
    model::RowSelection rows;
    const SourceGrid* grid = nullptr;
  };

  void add_reads() {
    std::vector<std::uint32_t> all(plan_.items.size());
    std::iota(all.begin(), all.end(), 0U);
    const GridCost cost = cost_of(plan_, all);
    report_.tile_reads = cost.tile_reads;
    report_.read_bytes = cost.bytes;
  }

  [[nodiscard]] GridBuild start(std::uint32_t index) const {
    const GridBuildSide& side = plan_.builds[index];
    const model::Matching& matching = side.matching;
    GridBuild build{.model = side.side.reference,
                    .commit = side.side.checkpoint->repository.commit};
    build.coverage.matched = matching.quantized.size() + matching.plain.size();
    build.coverage.source_only = matching.source_only;
    build.coverage.build_only = matching.build_only;
    for (const model::Absence& absence : matching.absent_by_design) {
      build.coverage.absent_by_design.emplace_back(absence.name, absence.reason);
    }
    return build;
  }

  void take(const GridItem& item, const GridItemResult& result) {
    GridBuild& build = report_.builds[item.build];
    ++build.coverage.compared;
    if (const auto* tensor = std::get_if<GridTensor>(&result)) {
      take_tensor(item, *tensor, build);
    } else {
      const auto& plain = std::get<PlainTensor>(result);
      ++build.plain_compared;
      const auto norm = pair_of(plan_, item).norm;
      if (norm) add_reader(item.build, *norm, plain.different > 0);
      if (plain.different == 0) {
        ++build.plain_identical;
      } else {
        build.different.push_back(plain);
        different_pairs_[item.build].push_back(item.pair);
      }
    }
  }

  void take_tensor(const GridItem& item, const GridTensor& tensor, GridBuild& build) {
    const model::WeightPair& pair = pair_of(plan_, item);
    build.totals.add(tensor.totals);
    if (tensor.smoothing && tensor.smoothing->is_excused()) add_smoothing(*tensor.smoothing, build);
    const bool by_norm =
        tensor.smoothing && tensor.smoothing->evidence == TensorSmoothing::Evidence::kNorm;
    if (pair.norm) add_reader(item.build, *pair.norm, by_norm);
    if (tensor.source_grid.groups > 0) {
      source_parts_[pair.source].emplace(
          pair.source_rows.count, Part{.rows = pair.source_rows, .grid = &tensor.source_grid});
    }
    build.tensors.push_back(tensor);
  }

  // Each weight of the source once, however many builds were compared with it. Where one build has
  // a weight whole and another in parts, the whole comes first and leaves nothing for the parts.
  void count_source_grids() {
    for (const auto& [weight, parts] : source_parts_) {
      std::vector<model::RowSelection> counted;
      for (const auto& [rows, part] : parts) {
        const auto is_counted = [&](const auto& other) { return overlap(other, part.rows); };
        if (std::ranges::any_of(counted, is_counted)) continue;
        counted.push_back(part.rows);
        report_.source_grid.add(*part.grid);
      }
    }
  }

  // A weight that reads a norm was compared. A plain one that differs as well may carry the factor.
  void add_reader(std::uint32_t build, std::uint32_t norm, bool has_factor) {
    Readers& readers = readers_[{build, norm}];
    ++(has_factor ? readers.scaled : readers.unscaled);
  }

  enum class NormState : std::uint8_t { kEdited, kExplained, kUnchecked };
  [[nodiscard]] NormState state_of(std::uint32_t build, std::uint32_t norm) const {
    const auto found = readers_.find({build, norm});
    if (found != readers_.end()) {
      return found->second.unscaled == 0 ? NormState::kExplained : NormState::kEdited;
    }
    const model::Matching& matching = plan_.builds[build].matching;
    const auto reads = [norm](const model::WeightPair& pair) { return pair.norm == norm; };
    const bool is_read = std::ranges::any_of(matching.quantized, reads);
    return is_read ? NormState::kUnchecked : NormState::kEdited;
  }

  void add_smoothing(const TensorSmoothing& found, GridBuild& build) {
    if (!build.smoothing) {
      build.smoothing =
          GridSmoothing{.min_factor = found.min_factor, .max_factor = found.max_factor};
    }
    GridSmoothing& all = *build.smoothing;
    ++all.tensors;
    all.min_factor = std::min(all.min_factor, found.min_factor);
    all.max_factor = std::max(all.max_factor, found.max_factor);
  }

  void conclude(std::uint32_t index) {
    GridBuild& build = report_.builds[index];
    std::map<std::string, std::uint64_t> formats;
    std::map<std::string, std::uint64_t> scales;
    std::map<std::uint64_t, std::uint64_t> sizes;
    for (const GridTensor& tensor : build.tensors) {
      const std::uint64_t weights = std::max<std::uint64_t>(tensor.totals.sums.weights, 1);
      formats[tensor.format] += weights;
      scales[tensor.scale_dtype] += weights;
      sizes[tensor.group_size] += weights;
    }
    build.format = most_common(formats);
    build.scale_dtype = most_common(scales);
    build.group_size = most_common(sizes);
    if (build.smoothing) sum_up_smoothing(build.tensors, *build.smoothing);
    const Plain plain = sort_plain(index, build);
    if (build.smoothing) build.smoothing->norms = plain.smoothed.size();
    build.verdict = verdict_of_build(index, build, plain);
    add_findings(index, build, plain);
  }

  // The plain tensors that differ, by why.
  struct Plain {
    std::vector<std::string> edited;
    std::vector<std::string> smoothed;
    std::vector<std::string> unchecked;
    bool is_broken = false;  // values that are no numbers
  };
  [[nodiscard]] Plain sort_plain(std::uint32_t index, const GridBuild& build) const {
    Plain plain;
    for (std::size_t i = 0; i < build.different.size(); ++i) {
      const PlainTensor& tensor = build.different[i];
      const NormState state = state_of(index, different_pairs_.at(index)[i]);
      auto& names = state == NormState::kEdited      ? plain.edited
                    : state == NormState::kExplained ? plain.smoothed
                                                     : plain.unchecked;
      names.push_back(tensor.name);
      plain.is_broken = plain.is_broken || !std::isfinite(tensor.max_abs_error);
    }
    return plain;
  }

  // Of all weights: those that are missing or differ although they were left unquantized as well.
  [[nodiscard]] Verdict verdict_of_build(std::uint32_t index, const GridBuild& build,
                                         const Plain& plain) const {
    const Verdict verdict = worst_verdict(build.tensors);
    const auto& matched = plan_.builds[index].matching.findings;
    const auto is_missing = [](const Finding& found) {
      return found.code == "SOURCE_ONLY" && found.severity == Severity::kError;
    };
    const bool is_incomplete = plan_.selection.empty() && std::ranges::any_of(matched, is_missing);
    if (plain.is_broken || is_incomplete) return Verdict::kCorrupt;
    if (plain.edited.empty()) return verdict;
    return std::max(verdict, build.tensors.empty() ? Verdict::kDifferentModel : Verdict::kSameGrid);
  }

  // Totals as they are with every factor undone, the other weights as they were.
  static void sum_up_smoothing(const std::vector<GridTensor>& tensors, GridSmoothing& all) {
    for (const GridTensor& tensor : tensors) all.totals_after.add(best_totals(tensor));
  }

  void add_findings(std::uint32_t index, const GridBuild& build, const Plain& plain) {
    std::map<Verdict, std::vector<std::string>> by_verdict;
    std::vector<std::string> unsupported;
    for (const GridTensor& tensor : build.tensors) {
      (tensor.is_unsupported ? unsupported : by_verdict[tensor.verdict]).push_back(tensor.name);
    }
    add(build, kCorrupt, by_verdict[Verdict::kCorrupt]);
    add(build, kUnsupported, unsupported);
    add(build, kDiffers, by_verdict[Verdict::kDifferentModel]);
    add(build, kSmoothed, by_verdict[Verdict::kSmoothed]);
    add(build, kMoved, by_verdict[Verdict::kLevelsMoved]);
    add_shifted(build);
    add_remarks(build);
    add_where(build, kNotCompensated, [](const GridTensor& tensor) {
      return tensor.smoothing && !tensor.smoothing->is_excused();
    });
    add_where(build, kSourceNotFinite,
              [](const GridTensor& tensor) { return tensor.totals.sums.source_non_finite > 0; });
    add(build, kPlainDiffers, plain.edited);
    add(build, kNormUnchecked, plain.unchecked);
    add(build, kNormSmoothed, plain.smoothed);
    if (build.tensors.empty() && plan_.selection.empty()) add_nothing_quantized(build);
    const auto& matched = plan_.builds[index].matching.findings;
    report_.findings.insert(report_.findings.end(), matched.begin(), matched.end());
  }

  void add_shifted(const GridBuild& build) {
    add_where(build, kShifted, [](const GridTensor& tensor) {
      const bool is_related =
          tensor.verdict == Verdict::kLevelsMoved || tensor.verdict == Verdict::kSmoothed;
      return is_related && common_shift(tensor) != 0;
    });
  }

  void add_nothing_quantized(const GridBuild& build) {
    report_.findings.push_back(
        {.code = "NOTHING_QUANTIZED",
         .severity = Severity::kWarning,
         .message = quote(build.model) + ": no weight of it is quantized, so no grid was checked",
         .remedy = "name the source first and its quantized builds after it"});
  }

  template <typename Predicate>
  void add_where(const GridBuild& build, const Kind& kind, const Predicate& holds) {
    std::vector<std::string> names;
    for (const GridTensor& tensor : build.tensors) {
      if (holds(tensor)) names.push_back(tensor.name);
    }
    add(build, kind, names);
  }

  // What was odd about the bytes, tensors with the same remark together.
  void add_remarks(const GridBuild& build) {
    std::map<std::string, std::vector<std::string>> by_remark;
    for (const GridTensor& tensor : build.tensors) {
      for (const std::string& remark : tensor.remarks) by_remark[remark].push_back(tensor.name);
    }
    for (const auto& [remark, names] : by_remark) {
      const std::string what = fmt::format("something odd about their storage ({})", remark);
      add(build,
          {.code = "STORAGE_ODD",
           .severity = Severity::kWarning,
           .what = what,
           .remedy = "the figures hold; other readers may take it differently"},
          names);
    }
  }

  void add(const GridBuild& build, const Kind& kind, const std::vector<std::string>& names) {
    if (names.empty()) return;
    Finding finding{.code = std::string(kind.code),
                    .severity = kind.severity,
                    .message = fmt::format("{}: {} with {}", quote(build.model),
                                           count_of(names.size(), "tensor"), kind.what),
                    .remedy = std::string(kind.remedy)};
    for (const std::string& name : names) finding.add_tensor(name);
    report_.findings.push_back(std::move(finding));
  }

  // What reading the headers found, where it may bear on the answer.
  void add_loading(const GridSide& side) {
    for (const Finding& found : side.checkpoint->findings) {
      if (found.severity == Severity::kNote) continue;
      report_.findings.push_back(found);
      report_.findings.back().message = quote(side.reference) + ": " + found.message;
    }
  }

  const GridPlan& plan_;
  const GridResults& results_;
  GridReport report_;
  // By source weight, those with more rows first.
  std::map<std::uint32_t, std::multimap<std::uint64_t, Part, std::greater<>>> source_parts_;
  struct Readers {
    std::uint64_t scaled = 0;
    std::uint64_t unscaled = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Readers> readers_;   // by build and norm
  std::map<std::uint32_t, std::vector<std::uint32_t>> different_pairs_;  // by build
};

}  // namespace

Result<GridReport> assemble_grid_report(const GridPlan& plan, const GridResults& results) {
  return Assembly(plan, results).run();
}

}  // namespace gridscope::analysis
