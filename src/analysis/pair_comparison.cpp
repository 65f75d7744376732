// The idea: three readings of one pair. As it is; with the factor undone that the norms before it
// suggest, in the same pass, because norms are known beforehand; and, when neither explains what a
// sample of the columns shows, with a factor fitted to the columns, in passes of their own over a
// weight that is suspicious enough to be worth it.

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gridscope/analysis/item_comparison.hpp"
#include "gridscope/analysis/row_reader.hpp"
#include "gridscope/analysis/smoothing.hpp"
#include "gridscope/analysis/source_lattice.hpp"
#include "gridscope/analysis/verdict.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/model/modules.hpp"
#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/settled_grids.hpp"

namespace gridscope::analysis {
namespace {

using quant::Companion;
using quant::Int4Rows;
using quant::RowBlock;
using quant::RowRange;
using quant::SourceRows;
using quant::Tile;

using Factors = std::vector<double>;

// Columns and rows are looked at for a factor only where so many weights stand elsewhere.
constexpr double kSuspiciousShare = 0.02;

struct TileResult {
  GridTotals totals;
  GridTotals undone;  // with the norms' factor
  SourceGrid grid;
  ColumnSums columns;   // of the samples in which something is suspicious
  ColumnSums rows;      // likewise, of the first one
  std::string remark;   // on the build's bytes
  bool settles = true;  // groups of the source, as far as was tried
};

// The type that build values are rounded to.
Dtype source_dtype(const model::Weight& source) {
  const auto* const codes = source.spec.find(Companion::kCodes);
  const bool plain = source.spec.scheme == quant::Scheme::kPlain && codes != nullptr;
  return plain && is_plain_float(codes->dtype) ? codes->dtype : Dtype::kBF16;
}

// What a weight was multiplied with.
struct Scaling {
  const Factors* columns = nullptr;
  const Factors* rows = nullptr;
};

// Divides rows and their steps by their factors. `first`: the number of the first one.
void undo_rows(const Factors& factors, std::uint64_t first, RowBlock& block) {
  const auto divide = [](std::span<double> numbers, double factor) {
    for (double& number : numbers) number /= factor;
  };
  for (std::uint64_t row = 0; row < block.rows; ++row) {
    const double factor = factors[first + row];
    divide(std::span(block.values).subspan(row * block.columns, block.columns), factor);
    if (block.scales.empty()) continue;
    divide(std::span(block.scales).subspan(row * block.stride, block.stride), factor);
  }
}

// Divides columns by their factors, and steps by the mean factor of their group.
void undo_columns(const quant::GroupLayout& groups, const Factors& factors, RowBlock& block) {
  for (std::uint64_t row = 0; row < block.rows; ++row) {
    const std::uint64_t number = block.first_row + row;
    for (std::uint64_t k = 0; k < block.columns; ++k) {
      block.values[row * block.columns + k] /= factors[k];
    }
    if (block.scales.empty()) continue;
    for (std::uint64_t g = 0; g < groups.groups(number); ++g) {
      const RowRange range = groups.positions(number, g);
      double sum = 0.0;
      for (std::uint64_t p = range.first; p < range.end(); ++p) {
        sum += std::abs(factors[groups.order().empty() ? p : groups.order()[p]]);
      }
      if (range.count > 0) {
        block.scales[row * block.stride + g] *= static_cast<double>(range.count) / sum;
      }
    }
  }
}

class PairComparison final : public ItemComparison {
 public:
  PairComparison(const GridPlan& plan, const GridItem& item, PairReaders readers)
      : plan_(plan),
        item_(item),
        pair_(pair_of(plan, item)),
        source_(std::move(readers.source)),
        build_(std::move(readers.build)),
        dtype_(source_dtype(source_.weight())),
        tiles_(plan_tiles(source_.weight(), build_.weight(), pair_)),
        results_(tiles_.tiles()) {}

  // What has to be known before the first tile: the norms' factor, the source's group size.
  [[nodiscard]] Status prepare() {
    GRIDSCOPE_CHECK(read_norms());
    GRIDSCOPE_TRY(group_size_, find_group_size());
    if (group_size_ != 0) return {};
    from_ = GroupSizeFrom::kBuild;
    const std::uint64_t size = build_.decoder().layout().groups.size();
    group_size_ = size != 0 && pair_.columns % size == 0 ? size : pair_.columns;
    return {};
  }

  [[nodiscard]] const TilePlan& tiles() const override { return tiles_; }

  [[nodiscard]] Status compare_tile(std::uint64_t index, ComputeSlots& slots,
                                    TileMemory& memory) override {
    const RowRange tile = tiles_.tile(index);
    TileResult& result = results_[index];
    return for_each_block(tile, slots, memory, [&](RowRange block, BlockMemory& work) {
      if (block.first == tile.first) result.remark = build_.decoder().remark_on(memory.build.tile);
      return compare(block, memory, work, result);
    });
  }

  [[nodiscard]] Result<GridItemResult> finish(ComputeSlots& slots, TileMemory& memory) override {
    GridTensor tensor = describe();
    GridTotals undone;
    ColumnSums columns;
    for (const TileResult& part : results_) {
      tensor.totals.add(part.totals);
      undone.add(part.undone);
      tensor.source_grid.add(part.grid);
      columns.add(part.columns);
      add_remark(part.remark, tensor.remarks);
    }
    const bool norm_agrees = norm_factors_ && agrees_with_columns(*norm_factors_, columns);
    std::optional<Factors> fitted;
    if (norm_agrees && explains(undone, tensor.totals)) {
      tensor.smoothing = smoothing(TensorSmoothing::Evidence::kNorm, *norm_factors_, undone);
    } else if (!norm_agrees && is_suspicious(tensor.totals) && factors_from_columns(columns)) {
      GRIDSCOPE_TRY(fitted, fit_columns(slots, memory, tensor));
    }
    if (is_suspicious(best_totals(tensor)) && factors_from_columns(results_.front().rows)) {
      const Factors* by_norm = norm_agrees ? &*norm_factors_ : nullptr;
      GRIDSCOPE_CHECK(fit_rows(fitted ? &*fitted : by_norm, slots, memory, tensor));
    }
    tensor.verdict = verdict_of(tensor);
    return tensor;
  }

 private:
  [[nodiscard]] Result<std::uint64_t> find_group_size() const {
    const std::vector<RowRange> samples = tiles_.samples();
    std::vector<LoadedTile> loaded(samples.size());
    GRIDSCOPE_CHECK(source_.load(samples, loaded));
    GroupSizeVote vote(pair_.columns);
    TileMemory tile;
    BlockMemory work;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      tile.source = std::move(loaded[i]);
      GRIDSCOPE_TRY(const SourceRows source, source_rows(samples[i], tile, work));
      vote.add(source);
    }
    return vote.winner();
  }

  // Calls `use` with each block of a tile in a slot, while its bytes are in memory. Of the build,
  // the smaller side, the tile is read first; the source passes by.
  using UseBlock = std::function<Status(RowRange, BlockMemory&)>;
  [[nodiscard]] Status for_each_block(RowRange tile, ComputeSlots& slots, TileMemory& memory,
                                      const UseBlock& use) const {
    GRIDSCOPE_CHECK(build_.load(tile, memory.build));
    return source_.stream(tile, tiles_.block_rows, memory.source, [&](RowRange block) {
      return slots.with_slot([&](BlockMemory& work) { return use(block, work); });
    });
  }

  // Both norms, and the factor that they suggest.
  [[nodiscard]] Status read_norms() {
    if (!pair_.norm) return {};
    const GridBuildSide& side = plan_.builds[item_.build];
    const model::WeightPair& norm = side.matching.plain[*pair_.norm];
    if (norm.source_rows.count * norm.columns != pair_.columns) return {};
    const auto numbers_of = [&](const GridSide& of, std::uint32_t weight,
                                const model::RowSelection& rows) {
      return all_numbers(*of.checkpoint, of.weights[weight], rows, norm.columns);
    };
    GRIDSCOPE_TRY(const auto before, numbers_of(plan_.source, norm.source, norm.source_rows));
    GRIDSCOPE_TRY(auto after, numbers_of(side.side, norm.build, norm.build_rows));
    for (double& value : after) value -= norm.build_offset;
    norm_factors_ = factors_from_norms(before, after, norm.norm_offset);
    norm_is_known_ = true;
    return {};
  }

  [[nodiscard]] static Result<std::vector<double>> all_numbers(const model::Checkpoint& checkpoint,
                                                               const model::Weight& weight,
                                                               const model::RowSelection& rows,
                                                               std::uint64_t columns) {
    GRIDSCOPE_TRY(const RowReader reader, RowReader::open(checkpoint, weight, rows, columns));
    const RowRange all{.first = 0, .count = rows.count};
    LoadedTile loaded;
    GRIDSCOPE_CHECK(reader.load(all, loaded));
    RowBlock block;
    RowBlock scratch;
    GRIDSCOPE_CHECK(reader.decode(loaded.tile, all, block, scratch));
    return std::move(block.values);
  }

  // The source's rows as numbers of dtype_: a view of the tile where that is how they lie.
  [[nodiscard]] Result<SourceRows> source_rows(RowRange rows, const TileMemory& tile,
                                               BlockMemory& work) const {
    const Tile& stored = tile.source.tile;
    const quant::WeightSpec& spec = source_.weight().spec;
    const std::uint64_t row_bytes = pair_.columns * dtype_info(dtype_).block_bits / 8;
    const bool in_place = spec.scheme == quant::Scheme::kPlain && source_.is_contiguous() &&
                          spec.order == quant::WeightSpec::Order::kOutputMajor &&
                          spec.find(Companion::kCodes)->dtype == dtype_;
    if (in_place) {
      const auto all = stored.bytes.at(static_cast<std::size_t>(Companion::kCodes));
      const std::uint64_t before = source_.covering(rows).first - stored.rows.first;
      return SourceRows{.dtype = dtype_,
                        .bytes = all.subspan(before * row_bytes, rows.count * row_bytes)};
    }
    GRIDSCOPE_CHECK(source_.decode(stored, rows, work.source_rows, work.scratch));
    work.source_bytes.resize(rows.count * row_bytes);
    quant::store_numbers(dtype_, work.source_rows.values, work.source_bytes);
    return SourceRows{.dtype = dtype_, .bytes = work.source_bytes};
  }

  // A block of a tile that is in memory.
  [[nodiscard]] Status compare(RowRange block, const TileMemory& tile, BlockMemory& work,
                               TileResult& result) const {
    SourceLattice& lattice = work.lattice;
    lattice.columns = pair_.columns;
    lattice.group_size = group_size_;
    GRIDSCOPE_TRY(const SourceRows source, source_rows(block, tile, work));
    GRIDSCOPE_TRY(const bool fused, read_codes(block, tile, work));
    GridTotals totals;
    if (fused) {
      totals.sums =
          quant::compare_int4_bf16(work.codes, source, result.totals.sums.worst.error, work.kept);
    }
    const bool may_settle = fused && result.settles && totals.sums.source_non_finite == 0;
    if (!may_settle || !settle(source, work)) {
      result.settles = false;
      lattice.settled = std::nullopt;
    }
    fit_lattice(source, lattice);
    count_classes(lattice, from_, result.grid);
    if (fused) {
      count_moves(lattice, source, work.codes, totals);
      add(totals, result.totals);
    }
    const bool is_sample = tiles_.is_sample(block);
    if (is_sample) count_rule(lattice, source, result.grid);
    if (fused && !(is_sample && is_suspicious(totals))) return {};
    GRIDSCOPE_CHECK(decode_build(block, tile, work));
    if (!fused) compare_values(source, lattice, work.build_rows, result);
    if (!is_sample) return {};
    const std::vector<double> originals = doubles(source);
    result.columns.add_rows(work.build_rows, originals);
    if (block.first == 0) result.rows.append_rows(work.build_rows, originals);
    return {};
  }

  [[nodiscard]] Status decode_build(RowRange rows, const TileMemory& tile,
                                    BlockMemory& work) const {
    return build_.decode(tile.build.tile, rows, work.build_rows, work.scratch);
  }

  // For the fused kernels, which decode nothing to memory, or false when they do not fit.
  [[nodiscard]] Result<bool> read_codes(RowRange block, const TileMemory& tile,
                                        BlockMemory& work) const {
    if (norm_factors_ || dtype_ != Dtype::kBF16 || !build_.is_contiguous()) return false;
    return build_.decoder().decode_int4(tile.build.tile, build_.covering(block), work.codes);
  }

  // Settles what groups of the source it can: false where that is too few to be worth it.
  [[nodiscard]] bool settle(const SourceRows& source, BlockMemory& work) const {
    constexpr std::uint64_t kMostTriedForOne = 8;
    if (work.codes.group_size != group_size_) return false;
    auto& settled = work.lattice.settled;
    if (!settled) settled.emplace();
    quant::settle_grids(work.codes, source, work.kept, *settled);
    return settled->count() * kMostTriedForOne >= work.codes.rows * work.codes.groups;
  }

  void compare_values(const SourceRows& source, const SourceLattice& lattice, const RowBlock& build,
                      TileResult& result) const {
    add(totals_of(build, source, lattice), result.totals);
    if (!norm_factors_) return;
    RowBlock undone = build;
    undo({.columns = &*norm_factors_}, undone);
    add(totals_of(undone, source, lattice), result.undone);
  }

  [[nodiscard]] GridTotals totals_of(const RowBlock& build, const SourceRows& source,
                                     const SourceLattice& lattice) const {
    const quant::WeightLayout& layout = build_.decoder().layout();
    GridTotals totals;
    totals.sums = quant::compare_rows(layout, build, source);
    count_moves(lattice, source, layout.groups, build, totals);
    return totals;
  }

  // Rows are numbered within the pair from here on.
  void add(GridTotals block, GridTotals& totals) const {
    if (block.sums.worst.error >= 0.0) block.sums.worst.row -= build_.first_row();
    totals.add(block);
  }

  [[nodiscard]] static std::vector<double> doubles(const SourceRows& source) {
    std::vector<double> values(source.bytes.size() * 8 / dtype_info(source.dtype).block_bits);
    quant::load_numbers(source.dtype, source.bytes, values);
    return values;
  }

  // ---- a factor fitted to the columns -----------------------------------------------------------

  // `use`: with the decoded rows of every block of the build, and the source's.
  template <typename Use>
  [[nodiscard]] Status for_all_rows(ComputeSlots& slots, TileMemory& memory, const Use& use) const {
    const auto decode_and_use = [&](RowRange block, BlockMemory& work) -> Status {
      GRIDSCOPE_TRY(const SourceRows source, source_rows(block, memory, work));
      GRIDSCOPE_CHECK(decode_build(block, memory, work));
      use(work.build_rows, source);
      return {};
    };
    for (std::uint64_t index = 0; index < tiles_.tiles(); ++index) {
      GRIDSCOPE_CHECK(for_each_block(tiles_.tile(index), slots, memory, decode_and_use));
    }
    return {};
  }

  void undo(const Scaling& scaling, RowBlock& build) const {
    if (scaling.columns != nullptr) {
      undo_columns(build_.decoder().layout().groups, *scaling.columns, build);
    }
    if (scaling.rows != nullptr) {
      undo_rows(*scaling.rows, build.first_row - build_.first_row(), build);
    }
  }

  [[nodiscard]] Result<GridTotals> compare_without(const Scaling& scaling, ComputeSlots& slots,
                                                   TileMemory& memory) const {
    GridTotals totals;
    const auto compare_again = [&](RowBlock& build, const SourceRows& source) {
      undo(scaling, build);
      add(totals_of(build, source, fit_lattice(source, pair_.columns, group_size_)), totals);
    };
    GRIDSCOPE_CHECK(for_all_rows(slots, memory, compare_again));
    return totals;
  }

  // The factors, when they explain why weights stand elsewhere.
  [[nodiscard]] Result<std::optional<Factors>> fit_columns(ComputeSlots& slots, TileMemory& memory,
                                                           GridTensor& tensor) const {
    ColumnSums columns;
    const auto sum_up = [&](const RowBlock& build, const SourceRows& source) {
      columns.add_rows(build, doubles(source));
    };
    GRIDSCOPE_CHECK(for_all_rows(slots, memory, sum_up));
    auto factors = factors_from_columns(columns);
    if (!factors) return std::nullopt;
    GRIDSCOPE_TRY(const GridTotals after, compare_without({.columns = &*factors}, slots, memory));
    if (!explains(after, tensor.totals)) return std::nullopt;
    const auto evidence = norm_is_known_ ? TensorSmoothing::Evidence::kAgainstNorm
                                         : TensorSmoothing::Evidence::kColumns;
    tensor.smoothing = smoothing(evidence, *factors, after);
    return factors;
  }

  // Factors of the rows, with those of the columns undone.
  [[nodiscard]] Status fit_rows(const Factors* columns, ComputeSlots& slots, TileMemory& memory,
                                GridTensor& tensor) const {
    ColumnSums rows;
    const auto sum_up = [&](RowBlock& build, const SourceRows& source) {
      undo({.columns = columns}, build);
      rows.append_rows(build, doubles(source));
    };
    GRIDSCOPE_CHECK(for_all_rows(slots, memory, sum_up));
    const auto factors = factors_from_columns(rows);
    if (!factors) return {};
    GRIDSCOPE_TRY(const GridTotals after,
                  compare_without({.columns = columns, .rows = &*factors}, slots, memory));
    if (!explains(after, best_totals(tensor))) return {};
    if (!tensor.smoothing) {
      tensor.smoothing = TensorSmoothing{.evidence = TensorSmoothing::Evidence::kRows};
      if (columns != nullptr) {
        tensor.smoothing = smoothing(TensorSmoothing::Evidence::kNorm, *columns, after);
      }
    }
    const FactorRange range = range_of(*factors);
    tensor.smoothing->min_row_factor = range.lowest;
    tensor.smoothing->max_row_factor = range.highest;
    tensor.smoothing->totals_after = after;
    return {};
  }

  [[nodiscard]] static bool is_suspicious(const GridTotals& totals) {
    return totals.moved_share() > kSuspiciousShare;
  }

  // Whether a factor is real: without it the build lies clearly nearer to the source.
  [[nodiscard]] static bool explains(const GridTotals& after, const GridTotals& before) {
    return after.sums.squared_error < 0.8 * before.sums.squared_error;
  }

  static void add_remark(const std::string& remark, std::vector<std::string>& remarks) {
    const bool is_new = std::ranges::find(remarks, remark) == remarks.end();
    if (!remark.empty() && is_new) remarks.push_back(remark);
  }

  [[nodiscard]] static TensorSmoothing smoothing(TensorSmoothing::Evidence evidence,
                                                 const Factors& factors, const GridTotals& after) {
    const FactorRange range = range_of(factors);
    return {.evidence = evidence,
            .min_factor = range.lowest,
            .max_factor = range.highest,
            .totals_after = after};
  }

  [[nodiscard]] GridTensor describe() const {
    const quant::WeightLayout& layout = build_.decoder().layout();
    const model::Checkpoint& checkpoint = *plan_.builds[item_.build].side.checkpoint;
    GridTensor tensor{.name = pair_.name, .source_name = pair_.source_name};
    tensor.shape = {tiles_.rows, pair_.columns};
    tensor.role = model::role_key(build_.weight().info.role);
    tensor.format = model::describe_storage(checkpoint.modules.modules[build_.weight().module],
                                            checkpoint.tensors);
    if (layout.scale_dtype) tensor.scale_dtype = dtype_name(*layout.scale_dtype);
    tensor.group_size = layout.groups.size();
    tensor.remarks = layout.remarks;
    return tensor;
  }

  const GridPlan& plan_;
  const GridItem item_;
  const model::WeightPair& pair_;
  RowReader source_;
  RowReader build_;
  Dtype dtype_;
  TilePlan tiles_;
  bool norm_is_known_ = false;
  std::optional<Factors> norm_factors_;
  std::uint64_t group_size_ = 0;
  GroupSizeFrom from_ = GroupSizeFrom::kSource;
  std::vector<TileResult> results_;
};

}  // namespace

Result<std::unique_ptr<ItemComparison>> open_pair_comparison(const GridPlan& plan,
                                                             const GridItem& item) {
  GRIDSCOPE_TRY(auto readers, open_readers(plan, item));
  auto comparison = std::make_unique<PairComparison>(plan, item, std::move(readers));
  GRIDSCOPE_CHECK(comparison->prepare());
  return comparison;
}

}  // namespace gridscope::analysis
