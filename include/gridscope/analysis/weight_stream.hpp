#pragma once

// A weight's decoded rows, from wherever it lies, in bounded memory: for library users who want the
// numbers themselves. See xtensor_views.hpp for them as arrays.

#include <functional>

#include "gridscope/core/result.hpp"
#include "gridscope/model/checkpoint.hpp"
#include "gridscope/model/weights.hpp"
#include "gridscope/quant/row_block.hpp"

namespace gridscope::analysis {

// Called with blocks of whole rows, in order; a block's memory is used again for the next one.
using RowBlockSink = std::function<Status(const quant::RowBlock& block)>;

// Reads, decodes and hands over the whole weight, however it is stored. At most 32 MiB of it are in
// memory as stored, and 64 Ki weights decoded (one row, where rows are longer).
// Errors: those of model::open_weight, of reading and of the sink, which ends the stream.
[[nodiscard]] Status stream_weight(const model::Checkpoint& checkpoint, const model::Weight& weight,
                                   const RowBlockSink& sink);

}  // namespace gridscope::analysis
