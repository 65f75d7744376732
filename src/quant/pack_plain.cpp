#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gridscope/core/checked.hpp"
#include "gridscope/quant/codec.hpp"
#include "packers.hpp"

namespace gridscope::quant {
namespace {

std::uint64_t element_bytes(Dtype dtype) {
  return dtype_info(dtype).block_bits / 8;
}

// Every value rounded once; BF16 unless `like` asks for another type.
Result<StoredTensor> rounded_values(const LeveledWeight& weight, const WeightSpec& like) {
  const StoredTensor* const codes = like.find(Companion::kCodes);
  const Dtype dtype = codes == nullptr ? Dtype::kBF16 : codes->dtype;
  if (!is_plain_float(dtype)) return cannot_hold(like, "its type is no float of 16 bits and more");
  StoredTensor tensor = {.dtype = dtype, .shape = {weight.rows, weight.columns}};
  tensor.data.resize(weight.levels.size() * element_bytes(dtype));
  store_numbers(dtype, values_of(weight), tensor.data);
  return tensor;
}

StoredTensor transposed(const StoredTensor& tensor) {
  const std::uint64_t rows = tensor.shape[0];
  const std::uint64_t columns = tensor.shape[1];
  const std::uint64_t bytes = element_bytes(tensor.dtype);
  StoredTensor result = {.dtype = tensor.dtype, .shape = {columns, rows}};
  result.data.resize(tensor.data.size());
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      std::ranges::copy_n(&tensor.data[(row * columns + column) * bytes],
                          static_cast<std::ptrdiff_t>(bytes),
                          &result.data[(column * rows + row) * bytes]);
    }
  }
  return result;
}

// The values of a dense weight that are kept, and where they were.
class SparseRows {
 public:
  explicit SparseRows(const StoredTensor& dense) : dense_(dense) {
    bitmask.shape = {dense.shape[0], ceil_div(dense.shape[1], 8)};
    bitmask.data.resize(bitmask.shape[0] * bitmask.shape[1]);
  }

  void keep(std::uint64_t row, std::uint64_t column) {
    const std::uint64_t bytes = element_bytes(dense_.dtype);
    const std::uint64_t first = (row * dense_.shape[1] + column) * bytes;
    const auto value = std::span(dense_.data).subspan(first, bytes);
    values.insert(values.end(), value.begin(), value.end());
    bitmask.data[row * bitmask.shape[1] + column / 8] |= std::byte{1} << (column % 8);
  }

  StoredTensor bitmask = {.dtype = Dtype::kU8};
  std::vector<std::byte> values;

 private:
  const StoredTensor& dense_;
};

// All that are not zero: the number of them before each row.
std::vector<std::uint64_t> keep_nonzero(std::span<const double> values, std::uint64_t columns,
                                        SparseRows& sparse) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (i % columns == 0) offsets.push_back(kept);
    if (values[i] == 0.0) continue;
    sparse.keep(i / columns, i % columns);
    ++kept;
  }
  return offsets;
}

// Two of every four, zeros among them where there are not enough others.
Status keep_two_of_four(std::span<const double> values, std::uint64_t columns,
                        const WeightSpec& like, SparseRows& sparse) {
  if (columns % 4 != 0) return cannot_hold(like, "its columns are no multiple of four");
  for (std::uint64_t first = 0; first < values.size(); first += 4) {
    const auto quad = values.subspan(first, 4);
    auto zeros_kept = 2 - std::ranges::count_if(quad, [](double value) { return value != 0.0; });
    if (zeros_kept < 0) {
      return cannot_hold(
          like, fmt::format("more than two of four weights from {} on are not zero", first));
    }
    for (std::uint64_t i = 0; i < quad.size(); ++i) {
      if (quad[i] == 0.0 && --zeros_kept < 0) continue;
      sparse.keep(first / columns, first % columns + i);
    }
  }
  return {};
}

}  // namespace

Result<WeightSpec> pack_plain(const LeveledWeight& weight, const WeightSpec& like) {
  WeightSpec spec = without_tensors(like);
  GRIDSCOPE_TRY(StoredTensor tensor, rounded_values(weight, like));
  const bool input_major = like.order == WeightSpec::Order::kInputMajor;
  spec[Companion::kCodes] = input_major ? transposed(tensor) : std::move(tensor);
  return spec;
}

Result<WeightSpec> pack_sparse(const LeveledWeight& weight, const WeightSpec& like) {
  WeightSpec spec = without_tensors(like);
  GRIDSCOPE_TRY(const StoredTensor dense, rounded_values(weight, like));
  std::vector<double> values(weight.levels.size());
  load_numbers(dense.dtype, dense.data, values);
  SparseRows sparse(dense);
  StoredTensor codes = {.dtype = dense.dtype, .shape = {weight.rows, weight.columns / 2}};
  if (like.format == "sparse-24-bitmask") {
    GRIDSCOPE_CHECK(keep_two_of_four(values, weight.columns, like, sparse));
  } else {
    const auto offsets = keep_nonzero(values, weight.columns, sparse);
    spec[Companion::kRowOffsets] =
        integer_tensor<std::uint64_t>(Dtype::kI64, {weight.rows}, offsets);
    codes.shape = {sparse.values.size() / element_bytes(dense.dtype)};
  }
  codes.data = std::move(sparse.values);
  spec[Companion::kCodes] = std::move(codes);
  spec[Companion::kBitmask] = std::move(sparse.bitmask);
  const std::array<std::uint64_t, 2> shape = {weight.rows, weight.columns};
  spec[Companion::kShape] = integer_tensor<std::uint64_t>(Dtype::kI64, {shape.size()}, shape);
  return spec;
}

}  // namespace gridscope::quant
