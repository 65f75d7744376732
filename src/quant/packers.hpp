#pragma once

// The packers, by the family that shares a layout, and what they have in common. pack() has checked
// before that sizes agree and that levels and zero points fit into the bits.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gridscope/core/endian.hpp"
#include "gridscope/core/result.hpp"
#include "gridscope/quant/pack.hpp"

namespace gridscope::quant {

// pack_plain.cpp: plain floats in either order, each value rounded once; the sparse formats.
[[nodiscard]] Result<WeightSpec> pack_plain(const LeveledWeight& weight, const WeightSpec& like);
[[nodiscard]] Result<WeightSpec> pack_sparse(const LeveledWeight& weight, const WeightSpec& like);
// pack_ct_packed.cpp: compressed-tensors pack-quantized.
[[nodiscard]] Result<WeightSpec> pack_ct_packed(const LeveledWeight& weight,
                                                const WeightSpec& like);
// pack_element.cpp: one code an element.
[[nodiscard]] Result<WeightSpec> pack_element(const LeveledWeight& weight, const WeightSpec& like);
// pack_gptq.cpp: versions 1 and 2 and planes, with a group index.
[[nodiscard]] Result<WeightSpec> pack_gptq(const LeveledWeight& weight, const WeightSpec& like);
// pack_awq.cpp: GEMM, GEMV, GEMV_FAST, all with zero points.
[[nodiscard]] Result<WeightSpec> pack_awq(const LeveledWeight& weight, const WeightSpec& like);
// pack_mlx.cpp: affine.
[[nodiscard]] Result<WeightSpec> pack_mlx(const LeveledWeight& weight, const WeightSpec& like);
// pack_modelopt_int4.cpp: ModelOpt INT4-AWQ, without column factors.
[[nodiscard]] Result<WeightSpec> pack_modelopt_int4(const LeveledWeight& weight,
                                                    const WeightSpec& like);
// pack_fp4.cpp: floating codes, for levels that are numbers of their type.
[[nodiscard]] Result<WeightSpec> pack_fp4(const LeveledWeight& weight, const WeightSpec& like);
// pack_bnb.cpp: nf4 and fp4. A level is the rank of a code's value, 0 in the middle.
[[nodiscard]] Result<WeightSpec> pack_bnb(const LeveledWeight& weight, const WeightSpec& like);
// pack_gguf.cpp: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0, whichever `like.format` names.
[[nodiscard]] Result<WeightSpec> pack_gguf(const LeveledWeight& weight, const WeightSpec& like);

// ---- shared -------------------------------------------------------------------------------------

// kInvalidArgument: the format of `like` cannot hold the weight because of `what`.
[[nodiscard]] tl::unexpected<Error> cannot_hold(const WeightSpec& like, std::string_view what);

[[nodiscard]] inline std::uint64_t groups_of(const LeveledWeight& weight) {
  return weight.columns / weight.group_size;
}
// The group of a column.
[[nodiscard]] std::uint64_t group_of(const LeveledWeight& weight, std::uint64_t column);

// (level - zero) * scale of every weight.
[[nodiscard]] std::vector<double> values_of(const LeveledWeight& weight);

// Whether any zero point is not the middle.
[[nodiscard]] bool has_zeros(const LeveledWeight& weight);

// What a format adds that has an offset for a zero point: value = scale * code + offset.
[[nodiscard]] std::vector<double> offsets_of(const LeveledWeight& weight);

// Each level as a code: plus 2^(bits-1). Requires: bits <= 8.
[[nodiscard]] std::vector<std::uint8_t> codes_of(std::span<const std::int16_t> levels,
                                                 std::uint32_t bits);

// What `like` asks for, without its tensors.
[[nodiscard]] WeightSpec without_tensors(const WeightSpec& like);

// The scale type that `like` asks for; BF16 when it says nothing.
[[nodiscard]] Dtype scale_type_of(const WeightSpec& like);

// kInvalidArgument unless numbers of that type hold every value exactly, for any type of floats.
[[nodiscard]] Result<StoredTensor> exact_tensor(const WeightSpec& like, Dtype dtype,
                                                std::vector<std::uint64_t> shape,
                                                std::span<const double> values);

// The scales with a row for each group and a column for each row of the weight.
[[nodiscard]] Result<StoredTensor> scales_by_group(const LeveledWeight& weight,
                                                   const WeightSpec& like);

template <typename Stored>
[[nodiscard]] StoredTensor integer_tensor(Dtype dtype, std::vector<std::uint64_t> shape,
                                          std::span<const Stored> values) {
  StoredTensor tensor = {.dtype = dtype, .shape = std::move(shape)};
  tensor.data.resize(values.size_bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_le(std::span(tensor.data).subspan(i * sizeof(Stored)), values[i]);
  }
  return tensor;
}

}  // namespace gridscope::quant
