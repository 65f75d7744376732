#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "decoders.hpp"
#include "spec_checks.hpp"
#include "stored_numbers.hpp"

// Quantized weights whose matrix lies on its side: inputs down, outputs across, packed along the
// inputs all the same. ModelOpt quantizes the stacked experts of Llama 4 and gpt-oss row by row and
// then turns codes and scales back into the order of the model's parameter. Whole elements move, so
// that bytes turned around once are what the decoder of the usual order takes.

namespace gridscope::quant {
namespace {

// What is turned; everything else is read whole or stored in the order of the rows.
constexpr std::array kTurned = {Companion::kCodes, Companion::kScale};

bool is_turned(const WeightSpec& spec, Companion companion) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  const StoredTensor* tensor = spec.find(companion);
  return tensor != nullptr && tensor->shape.size() == 2 && columns_of(*tensor) == columns_of(codes);
}

// Element by element from [stored rows, rows of the tile] to [rows, stored rows].
std::vector<std::byte> turn(std::span<const std::byte> bytes, std::size_t element_bytes,
                            RowRange stored, RowRange rows) {
  const std::uint64_t height = bytes.size() / (stored.count * element_bytes);
  const std::uint64_t skipped = rows.first - stored.first;
  std::vector<std::byte> turned(rows.count * height * element_bytes);
  for (std::uint64_t i = 0; i < height; ++i) {
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      std::memcpy(&turned[(row * height + i) * element_bytes],
                  &bytes[(i * stored.count + skipped + row) * element_bytes], element_bytes);
    }
  }
  return turned;
}

class InputMajorDecoder final : public WeightDecoder {
 public:
  // Requires: `rows_decoder` takes what is_turned says the other way around.
  InputMajorDecoder(WeightSpec spec, std::unique_ptr<const WeightDecoder> rows_decoder)
      : spec_(std::move(spec)), rows_decoder_(std::move(rows_decoder)) {}

  [[nodiscard]] const WeightLayout& layout() const override { return rows_decoder_->layout(); }

  [[nodiscard]] TileNeeds needs(RowRange rows) const override {
    TileNeeds needs = rows_decoder_->needs(rows);
    for (const Companion companion : kTurned) {
      if (!is_turned(spec_, companion)) continue;
      const StoredTensor& tensor = *spec_.find(companion);
      strips_of(needs, companion) = column_strips(tensor, rows, rows_of(tensor));
    }
    return needs;
  }

  [[nodiscard]] Status decode(const Tile& tile, RowRange rows, RowBlock& out) const override {
    const TileNeeds whole = rows_decoder_->needs(tile.rows);
    const TileNeeds wanted = rows_decoder_->needs(rows);
    std::array<std::vector<std::byte>, kTurned.size()> turned;
    Tile part = {.rows = rows, .bytes = tile.bytes};
    for (std::size_t i = 0; i < kTurned.size(); ++i) {
      const auto companion = static_cast<std::size_t>(kTurned.at(i));
      std::span<const std::byte>& bytes = part.bytes.at(companion);
      const std::optional<Strips>& from = whole.at(companion);
      const std::optional<Strips>& to = wanted.at(companion);
      if (is_turned(spec_, kTurned.at(i))) {
        const std::size_t size = dtype_info(spec_.find(kTurned.at(i))->dtype).block_bits / 8;
        turned.at(i) = turn(bytes, size, tile.rows, rows);
        bytes = turned.at(i);
      } else if (from && to) {
        bytes = bytes.subspan(to->offset - from->offset, to->length);
      }
    }
    return rows_decoder_->decode(part, rows, out);
  }

 private:
  WeightSpec spec_;
  std::unique_ptr<const WeightDecoder> rows_decoder_;
};

// A scale that is not turned must be one number, or one for each output: of as many outputs as
// inputs a row of numbers might be for either.
Status check_scale(const WeightSpec& spec) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  const StoredTensor* scale = spec.find(Companion::kScale);
  if (scale == nullptr || elements_of(*scale) == 1 || is_turned(spec, Companion::kScale)) return {};
  const bool by_output = scale->shape.front() == columns_of(codes) &&
                         elements_of(*scale) == columns_of(codes) &&
                         columns_of(codes) != rows_of(codes);
  if (by_output) return {};
  return unsupported(spec, "its inputs come before its outputs, and its scale " +
                               shape_text(*scale) + " may be for either");
}

}  // namespace

DecoderResult make_input_major_decoder(WeightSpec spec) {
  GRIDSCOPE_TRY(const StoredTensor* const codes, require(spec, Companion::kCodes));
  if (codes->shape.size() != 2 || dtype_info(codes->dtype).block_bits % 8 != 0) {
    return unsupported(spec, "its inputs come before its outputs in " + shape_text(*codes));
  }
  GRIDSCOPE_CHECK(check_scale(spec));
  WeightSpec by_rows = spec;
  by_rows.order = WeightSpec::Order::kOutputMajor;
  for (const Companion companion : kTurned) {
    std::optional<StoredTensor>& tensor = by_rows[companion];
    if (!tensor || !is_turned(spec, companion)) continue;
    std::swap(tensor->shape.front(), tensor->shape.back());
  }
  GRIDSCOPE_TRY(auto decoder, make_decoder(std::move(by_rows)));
  return std::make_unique<InputMajorDecoder>(std::move(spec), std::move(decoder));
}

}  // namespace gridscope::quant
