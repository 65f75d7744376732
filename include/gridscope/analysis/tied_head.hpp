#pragma once

// Whether what is stored agrees with what the configuration says about the output layer: tied to
// the embedding (one table serves both) or a table of its own.

#include <cstdint>
#include <optional>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::model {
struct Checkpoint;
}

namespace gridscope::analysis {

// Bytes that a comparison may hold at once; with longer rows fewer of them are compared.
inline constexpr std::uint64_t kMaxSampleBytes = 16ULL * 1024 * 1024;

// TIED_HEAD_STORED (warning): the configuration ties, yet an output layer is stored beside the
// embedding. `bytes` is what it takes; the message says whether rows read from both, up to
// `sampled_rows` of them and always the first and the last, are byte-identical.
// TIED_HEAD_MISSING (error): the configuration of a language model says that the output layer is
// not tied, and none is stored, nor said to be the embedding under another name. Not judged when
// only part of the checkpoint's files is there. Errors: those of reading the rows, but for
// kUnsupported (a server that ignores ranges): then the message says that none were compared.
[[nodiscard]] Result<std::optional<Finding>> check_tied_head(const model::Checkpoint& checkpoint,
                                                             std::uint64_t sampled_rows);

// Row k of `samples` rows spread evenly over `rows`: 0 is the first, samples - 1 the last.
// Requires: k < samples, samples < 2^32.
[[nodiscard]] std::uint64_t sampled_row(std::uint64_t k, std::uint64_t samples, std::uint64_t rows);

}  // namespace gridscope::analysis
