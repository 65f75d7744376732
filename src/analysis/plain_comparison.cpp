// The idea: a tensor that the build left alone holds the source's numbers, cast once to the build's
// type. Same type and order: rows are compared as bytes, and only rows that differ are looked at
// closely. What an exporter adds on purpose (GGUF norms) is added to the source before the cast.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gridscope/analysis/item_comparison.hpp"
#include "gridscope/analysis/row_reader.hpp"
#include "gridscope/quant/codec.hpp"

namespace gridscope::analysis {
namespace {

using quant::Companion;
using quant::RowRange;

constexpr auto kCodes = static_cast<std::size_t>(Companion::kCodes);

// The same bits after the cast, which is what doubles with the sign of zero and NaN show.
bool is_same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

class PlainComparison final : public ItemComparison {
 public:
  PlainComparison(const GridPlan& plan, const GridItem& item, PairReaders readers)
      : pair_(pair_of(plan, item)),
        source_(std::move(readers.source)),
        build_(std::move(readers.build)),
        dtype_(build_.weight().spec.find(Companion::kCodes)->dtype),
        tiles_(plan_tiles(source_.weight(), build_.weight(), pair_)),
        results_(tiles_.tiles()) {}

  [[nodiscard]] const TilePlan& tiles() const override { return tiles_; }

  [[nodiscard]] Status compare_tile(std::uint64_t index, ComputeSlots& slots,
                                    TileMemory& memory) override {
    const RowRange tile = tiles_.tile(index);
    GRIDSCOPE_CHECK(build_.load(tile, memory.build));
    return source_.stream(tile, tiles_.block_rows, memory.source, [&](RowRange block) {
      return slots.with_slot(
          [&](BlockMemory& work) { return compare(block, memory, work, results_[index]); });
    });
  }

  [[nodiscard]] Result<GridItemResult> finish(ComputeSlots& /*slots*/,
                                              TileMemory& /*memory*/) override {
    PlainTensor whole{.name = pair_.name, .source_name = pair_.source_name};
    whole.values = tiles_.rows * pair_.columns;
    for (const Difference& part : results_) {
      whole.different += part.different;
      whole.max_abs_error = std::max(whole.max_abs_error, part.max_abs_error);
    }
    return whole;
  }

 private:
  struct Difference {
    std::uint64_t different = 0;
    double max_abs_error = 0.0;
  };

  // Whether bytes can stand for numbers.
  [[nodiscard]] bool is_same_storage() const {
    const auto& source = source_.weight().spec;
    const auto& build = build_.weight().spec;
    return source.scheme == quant::Scheme::kPlain && build.scheme == quant::Scheme::kPlain &&
           source.order == build.order && source.order == quant::WeightSpec::Order::kOutputMajor &&
           source.find(Companion::kCodes)->dtype == dtype_ && source_.is_contiguous() &&
           build_.is_contiguous() && pair_.build_offset == 0.0;
  }

  [[nodiscard]] Status compare(RowRange block, const TileMemory& tile, BlockMemory& work,
                               Difference& found) const {
    if (is_same_storage() && has_same_bytes(block, tile)) return {};
    GRIDSCOPE_CHECK(source_.decode(tile.source.tile, block, work.source_rows, work.scratch));
    GRIDSCOPE_CHECK(build_.decode(tile.build.tile, block, work.build_rows, work.scratch));
    add_differences(work.source_rows.values, work.build_rows.values, found);
    return {};
  }

  // Requires: is_same_storage().
  [[nodiscard]] bool has_same_bytes(RowRange block, const TileMemory& memory) const {
    const std::uint64_t row_bytes = pair_.columns * dtype_info(dtype_).block_bits / 8;
    const auto bytes_of = [&](const RowReader& side, const quant::Tile& tile) {
      const std::uint64_t first = side.covering(block).first - tile.rows.first;
      return tile.bytes.at(kCodes).subspan(first * row_bytes, block.count * row_bytes);
    };
    const auto before = bytes_of(source_, memory.source.tile);
    const auto after = bytes_of(build_, memory.build.tile);
    return std::memcmp(before.data(), after.data(), before.size()) == 0;
  }

  void add_differences(std::span<const double> source, std::span<const double> build,
                       Difference& found) const {
    for (std::size_t i = 0; i < source.size(); ++i) {
      const double expected = quant::rounded_to(dtype_, exported(source[i]));
      if (is_same(expected, build[i])) continue;
      ++found.different;
      const double error = std::abs(build[i] - expected);
      const bool is_number = !std::isnan(error);
      found.max_abs_error = std::max(found.max_abs_error,
                                     is_number ? error : std::numeric_limits<double>::infinity());
    }
  }

  // Adding 0 would lose the sign of -0.
  [[nodiscard]] double exported(double value) const {
    return pair_.build_offset == 0.0 ? value : value + pair_.build_offset;
  }

  const model::WeightPair& pair_;
  RowReader source_;
  RowReader build_;
  Dtype dtype_;
  TilePlan tiles_;
  std::vector<Difference> results_;
};

}  // namespace

Result<std::unique_ptr<ItemComparison>> open_plain_comparison(const GridPlan& plan,
                                                              const GridItem& item) {
  GRIDSCOPE_TRY(auto readers, open_readers(plan, item));
  return std::make_unique<PlainComparison>(plan, item, std::move(readers));
}

}  // namespace gridscope::analysis
