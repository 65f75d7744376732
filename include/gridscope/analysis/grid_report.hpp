#pragma once

// Whether builds kept their source's quantization grid: a plain value that can be written to JSON
// and read back. Counts are exact; sums are in double, in one fixed order.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/analysis/scale_ratios.hpp"
#include "gridscope/core/finding.hpp"
#include "gridscope/quant/error_sums.hpp"

namespace gridscope::analysis {

// From best to worst; of several tensors the worst counts.
enum class Verdict : std::uint8_t {
  kExact,           // every value is the source's
  kSameGrid,        // no level moved; scales were rounded anew
  kLevelsMoved,     // some weights stand on another level
  kSmoothed,        // columns were scaled, as AWQ and SmoothQuant do, and the norms before them
  kDifferentModel,  // too far off to be a build of this source: kDifferentModelSqnrDb
  kCorrupt,         // non-finite values, dead groups where the source lives, undecodable weights
};
[[nodiscard]] std::string_view verdict_key(Verdict verdict);  // "same_grid"
[[nodiscard]] std::optional<Verdict> parse_verdict(std::string_view key);

// A weight whose signal to quantization noise lies below is no image of its source: two-bit builds
// keep 8 dB and more, unrelated weights of one scale have -3 dB.
inline constexpr double kDifferentModelSqnrDb = 5.0;

// The source's own grid, over the weights that were compared, each once.
struct SourceGrid {
  std::uint64_t groups = 0;
  std::uint64_t on_grid = 0;  // without the ambiguous ones
  std::uint64_t ambiguous = 0;
  std::uint64_t dead = 0;
  std::uint64_t off_grid = 0;
  std::uint64_t non_finite = 0;
  std::map<std::uint64_t, std::uint64_t> group_sizes = {};  // found size -> weights on such a grid
  std::map<int, std::uint64_t> top_levels = {};  // of the largest weight, q or -q -> on-grid groups
  // The published repack rule as a second opinion, on the groups of a row in about a thousand.
  std::uint64_t rule_groups = 0;
  std::uint64_t rule_accepts = 0;
  std::uint64_t rule_accepts_alone = 0;  // where the exact recovery finds no grid
  std::uint64_t rule_misses = 0;         // on grid by the exact recovery alone

  // The size with most weights; 0 when there is none.
  [[nodiscard]] std::uint64_t group_size() const;
  void add(const SourceGrid& other);
  friend bool operator==(const SourceGrid&, const SourceGrid&) = default;
};

struct GridTotals {
  quant::ErrorSums sums = {};
  // Levels by which the exact product stands off the source's lattice point, where it is not 0:
  // rounded, ties to the smaller move; over weights in on-grid groups of the source.
  std::map<int, std::uint64_t> level_moves = {};
  std::uint64_t level_moves_beyond = 0;  // farther than quant::LevelMoves counts, or no number
  std::uint64_t level_ties = 0;
  std::uint64_t lattice_weights = 0;  // weights in on-grid groups
  ScaleRatios scale_ratio = {};       // over groups that lie within one on-grid group of the source

  [[nodiscard]] double moved_share() const;
  [[nodiscard]] double mean_abs_error() const;
  [[nodiscard]] double rmse() const;
  [[nodiscard]] double relative_rmse() const;           // to the source's root mean square
  [[nodiscard]] std::optional<double> sqnr_db() const;  // empty when there is no error
  [[nodiscard]] std::optional<double> cosine() const;   // empty when either side is all zero
  // Adds what comes after this in order.
  void add(const GridTotals& later);
  friend bool operator==(const GridTotals&, const GridTotals&) = default;
};

// A factor for each input column, or each output row, by which the build's weight differs, and what
// is left without it.
struct TensorSmoothing {
  enum class Evidence : std::uint8_t {
    kNorm,         // the norm before the weight was divided by it
    kColumns,      // the columns alone: no norm before it is known
    kRows,         // the rows alone: where the columns of the layer after it have the inverse
    kAgainstNorm,  // the columns, although the norm before them does not have the inverse
  };
  Evidence evidence = Evidence::kNorm;
  double min_factor = 1.0;
  double max_factor = 1.0;
  double min_row_factor = 1.0;  // of rows, where those were scaled, alone or besides
  double max_row_factor = 1.0;
  GridTotals totals_after = {};

  // Whether the model may still be the same: figures are judged with the factor undone.
  [[nodiscard]] bool is_excused() const { return evidence != Evidence::kAgainstNorm; }
  friend bool operator==(const TensorSmoothing&, const TensorSmoothing&) = default;
};

// One pair of weights.
struct GridTensor {
  std::string name = {};
  std::string source_name = {};
  std::vector<std::uint64_t> shape = {};  // of the part that was compared: [rows, columns]
  std::string role = {};
  std::string format = {};       // "int4 g32", as the build stores it
  std::string scale_dtype = {};  // "" where there is none
  std::uint64_t group_size = 0;  // 0: groups are not regular
  Verdict verdict = Verdict::kExact;
  GridTotals totals = {};
  std::optional<TensorSmoothing> smoothing = {};
  SourceGrid source_grid = {};
  std::string fault = {};       // why it is corrupt, or could not be decoded
  bool is_unsupported = false;  // the fault is that no decoder knows its layout
  std::vector<std::string> remarks = {};

  friend bool operator==(const GridTensor&, const GridTensor&) = default;
};

// A tensor that the build left unquantized.
struct PlainTensor {
  std::string name = {};
  std::string source_name = {};
  std::uint64_t values = 0;
  std::uint64_t different = 0;  // after one cast to the build's type
  double max_abs_error = 0.0;   // infinite where one side is no number
  std::string fault = {};       // why it could not be read

  friend bool operator==(const PlainTensor&, const PlainTensor&) = default;
};

struct GridCoverage {
  std::uint64_t matched = 0;   // pairs, plain ones included
  std::uint64_t compared = 0;  // fewer with --tensor, --sample
  std::vector<std::string> source_only = {};
  std::vector<std::string> build_only = {};
  std::vector<std::pair<std::string, std::string>> absent_by_design = {};  // name, reason

  friend bool operator==(const GridCoverage&, const GridCoverage&) = default;
};

struct GridSmoothing {
  std::uint64_t norms = 0;  // norms that differ by a factor which the weights undo
  std::uint64_t tensors = 0;
  double min_factor = 1.0;
  double max_factor = 1.0;
  GridTotals totals_after = {};

  friend bool operator==(const GridSmoothing&, const GridSmoothing&) = default;
};

struct GridBuild {
  std::string model = {};
  std::string commit = {};
  std::string format = {};
  std::string scale_dtype = {};
  std::uint64_t group_size = 0;
  Verdict verdict = Verdict::kExact;
  GridTotals totals = {};
  std::vector<GridTensor> tensors = {};  // in order of name
  std::vector<PlainTensor> different = {};
  std::uint64_t plain_compared = 0;
  std::uint64_t plain_identical = 0;
  GridCoverage coverage = {};
  std::optional<GridSmoothing> smoothing = {};

  friend bool operator==(const GridBuild&, const GridBuild&) = default;
};

struct GridReport {
  std::string source = {};
  std::string source_commit = {};
  SourceGrid source_grid = {};
  std::vector<GridBuild> builds = {};
  std::string selection = {};  // what --tensor and --sample left, for a person; "" for everything
  std::vector<Finding> findings = {};
  // The weights that were compared, on both sides: by plan, so that a report is the same whether it
  // came of one run, of several or of a resumed one.
  std::uint64_t tile_reads = 0;  // as in GridCost
  std::uint64_t read_bytes = 0;

  friend bool operator==(const GridReport&, const GridReport&) = default;
};

}  // namespace gridscope::analysis
