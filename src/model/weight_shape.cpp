#include "gridscope/model/weight_shape.hpp"

#include <cstddef>
#include <utility>

// Most layouts keep one row of codes for each output, so that only the last dimension has to be
// found. The others transpose, or put several outputs into one row.

namespace gridscope::model {
namespace {

using quant::Companion;
using quant::Scheme;
using quant::StoredTensor;
using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kWordBits = 32;

std::uint64_t product(const Shape& shape, std::size_t first, std::size_t end) {
  std::uint64_t elements = 1;
  for (std::size_t i = first; i < end; ++i) elements *= shape[i];
  return elements;
}

std::uint64_t share(std::uint64_t parameters, std::uint64_t parts) {
  return parts == 0 ? 0 : parameters / parts;
}

// Rows of codes as they are, the columns from the number of weights.
Shape by_rows(const StoredTensor& codes, std::uint64_t parameters) {
  Shape shape = codes.shape;
  if (shape.empty()) return {parameters};
  shape.back() = share(parameters, product(shape, 0, shape.size() - 1));
  return shape;
}

// GPTQ [.., words of inputs, outputs] and AWQ [.., inputs, words of outputs]: `known` is the
// dimension of the two that is stored in full, counted from the end.
Shape transposed(const StoredTensor& codes, std::uint64_t parameters, std::size_t known) {
  Shape shape = codes.shape;
  if (shape.size() < 2) return {parameters};
  const std::size_t rank = shape.size();
  const std::uint64_t full = shape[rank - known];
  const std::uint64_t other = share(parameters, product(shape, 0, rank - 2) * full);
  shape[rank - 2] = known == 1 ? full : other;
  shape[rank - 1] = known == 1 ? other : full;
  return shape;
}

// `rows` outputs in each row of codes, all columns in full.
Shape stacked_rows(const StoredTensor& codes, std::uint64_t parameters, std::uint64_t rows) {
  Shape shape = codes.shape;
  if (shape.size() < 2) return {parameters};
  shape[shape.size() - 2] *= rows;
  return shape;
}

// Blocks of gpt-oss: [experts, outputs, blocks, 16].
Shape of_blocks(const StoredTensor& codes, std::uint64_t parameters) {
  Shape shape = codes.shape;
  if (shape.size() < 2) return {parameters};
  shape.pop_back();
  shape.back() = share(parameters, product(shape, 0, shape.size() - 1));
  return shape;
}

// Rows of codes, or in a stack of the other order columns of them.
Shape of_nvfp4(const quant::WeightSpec& spec, std::uint64_t parameters) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  const StoredTensor* scale = spec.find(Companion::kScale);
  if (scale == nullptr || !is_input_major_nvfp4(codes.shape, scale->shape)) {
    return by_rows(codes, parameters);
  }
  return {codes.shape[0], codes.shape[1] * 2, codes.shape[2]};
}

// 2:4 sparse weights keep half of their columns; of others the bit mask tells the columns to eight.
LogicalShape of_sparse(const quant::WeightSpec& spec) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  if (codes.shape.size() == 2) return {.shape = {codes.shape[0], codes.shape[1] * 2}};
  const StoredTensor* mask = spec.find(Companion::kBitmask);
  if (mask == nullptr || mask->shape.size() != 2) return {.shape = codes.shape};
  return {.shape = {mask->shape[0], mask->shape[1] * 8}, .padding = 7};
}

}  // namespace

LogicalShape logical_shape(const quant::WeightSpec& spec, std::uint64_t parameters,
                           std::uint32_t bits) {
  const StoredTensor& codes = *spec.find(Companion::kCodes);
  switch (spec.scheme) {
    case Scheme::kPlain:
    case Scheme::kGgufBlock:
      return {.shape = codes.shape};
    case Scheme::kCtPackQuantized: {
      const std::uint64_t in_word = bits == 0 ? 1 : kWordBits / bits;
      return {.shape = by_rows(codes, parameters), .padding = in_word - 1};
    }
    case Scheme::kCtSparse:
      return of_sparse(spec);
    case Scheme::kGptq:
      return {.shape = transposed(codes, parameters, 1)};
    case Scheme::kAwqGemm:
      return {.shape = transposed(codes, parameters, 2)};
    case Scheme::kAwqGemvFast:
      return {.shape = stacked_rows(codes, parameters, 4)};
    case Scheme::kModelOptInt4Awq:
      return {.shape = stacked_rows(codes, parameters, 2)};
    case Scheme::kModelOptNvfp4:
      return {.shape = of_nvfp4(spec, parameters)};
    case Scheme::kGptOssMxfp4:
      return {.shape = of_blocks(codes, parameters)};
    case Scheme::kBnbNf4:
    case Scheme::kBnbFp4:
      return {.shape = {parameters}, .padding = 1, .is_flat = true};
    default:
      return {.shape = by_rows(codes, parameters)};
  }
}

bool is_input_major_nvfp4(std::span<const std::uint64_t> codes,
                          std::span<const std::uint64_t> scales) {
  constexpr std::uint64_t kBytesPerScale = 8;
  return codes.size() == 3 && scales.size() == 3 && codes[0] == scales[0] && codes[1] != 0 &&
         scales[1] == codes[1] / kBytesPerScale && codes[1] % kBytesPerScale == 0 &&
         codes[2] == scales[2];
}

}  // namespace gridscope::model
