#pragma once

// What the text and the Markdown form of an inspection share: sentences and tables, with foreign
// strings as they are. The form that shows them escapes them.

#include <string>

#include "gridscope/analysis/inspection.hpp"
#include "gridscope/report/text_table.hpp"

namespace gridscope::report {

// Which model it is: "org/name @ main (commit 1234567)".
[[nodiscard]] std::string model_title(const analysis::Inspection& inspection);

// How it is stored: "gemma4, safetensors, 1 file, 8.316 GB (7.745 GiB); compressed-tensors
// pack-quantized int4, group 32, symmetric".
[[nodiscard]] std::string storage_summary(const analysis::Inspection& inspection);

// The rows that the inspection was asked to show, with a total: sizes in GB (10^9 bytes) and GiB
// (2^30 bytes), or in MB (10^6) and MiB (2^20) when all tensors together are below 100 MB; share of
// all tensor bytes.
[[nodiscard]] TextTable row_table(const analysis::Inspection& inspection);

// One line for each tensor that the inspection lists.
[[nodiscard]] TextTable tensor_table(const analysis::Inspection& inspection);

}  // namespace gridscope::report
