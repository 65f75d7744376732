#pragma once

// What every decoder asks of its spec, with one wording.

#include <initializer_list>
#include <string>
#include <string_view>

#include "gridscope/core/result.hpp"
#include "gridscope/quant/weight_decoder.hpp"

namespace gridscope::quant {

// "weight 'layers.0.q_proj' (ct_pack_quantized): " + what.
[[nodiscard]] tl::unexpected<Error> corrupt(const WeightSpec& spec, std::string_view what,
                                            std::string remedy = {});
[[nodiscard]] tl::unexpected<Error> unsupported(const WeightSpec& spec, std::string_view what);

// The tensor, or kCorrupt that says which one is missing.
[[nodiscard]] Result<const StoredTensor*> require(const WeightSpec& spec, Companion companion);
// The same, of one of these types. With data when is_read_whole(companion).
[[nodiscard]] Result<const StoredTensor*> require(const WeightSpec& spec, Companion companion,
                                                  std::initializer_list<Dtype> dtypes);

// "I32 [8, 4]".
[[nodiscard]] std::string shape_text(const StoredTensor& tensor);

// The last dimension, and the product of the others; 1 for what is not there. Overflow was ruled
// out when the header was read.
[[nodiscard]] std::uint64_t columns_of(const StoredTensor& tensor);
[[nodiscard]] std::uint64_t rows_of(const StoredTensor& tensor);
[[nodiscard]] std::uint64_t elements_of(const StoredTensor& tensor);

// Bytes of one row of elements of a plain type.
[[nodiscard]] std::uint64_t row_bytes(const StoredTensor& tensor);

// Rows [first, first + count) of a tensor seen as rows x columns, as one strip.
[[nodiscard]] Strips row_strip(const StoredTensor& tensor, std::uint64_t first,
                               std::uint64_t count);

}  // namespace gridscope::quant
