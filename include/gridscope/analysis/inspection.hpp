#pragma once

// Where a checkpoint's bytes go. A plain value: it can be written to JSON and read back.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::model {
struct Checkpoint;
}

namespace gridscope::analysis {

// One line of the answer: tensors that belong together.
struct InspectionRow {
  // "transformer_body"; of a role "transformer_body/attention/packed_weights"
  std::string key;
  std::string title;  // "transformer body"
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  double share = 0.0;            // of all tensor bytes, 0 to 1
  std::uint64_t parameters = 0;  // logical: packed weights counted, scales and their like not
  // 8 * bytes / parameters; 0 when there are no parameters, or codes of an unknown packing
  double bits_per_weight = 0.0;
  std::map<std::string, std::uint64_t> dtypes;  // type -> tensors
  std::string stored_as;                        // "BF16", "int4 g32, BF16 scales"

  friend bool operator==(const InspectionRow&, const InspectionRow&) = default;
};

struct InspectionTensor {
  std::string name;
  std::string file;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string part;
  std::string role;

  friend bool operator==(const InspectionTensor&, const InspectionTensor&) = default;
};

struct QuantizationSummary {
  std::string method;
  std::string format;
  std::optional<std::uint32_t> bits;
  std::optional<std::int64_t> group_size;
  std::optional<bool> symmetric;
  std::string config_source;  // "" when only the tensors say so

  friend bool operator==(const QuantizationSummary&, const QuantizationSummary&) = default;
};

// What the rows of `groups` stand for.
enum class GroupBy : std::uint8_t { kPart, kRole, kDtype, kLayer, kFile };
[[nodiscard]] std::string_view group_by_name(GroupBy by);
[[nodiscard]] std::optional<GroupBy> parse_group_by(std::string_view name);

struct Inspection {
  // model
  std::string reference = {};
  std::string kind = {};
  std::string revision = {};
  std::string commit = {};

  std::string container = {};
  std::string model_type = {};
  std::vector<std::string> architectures = {};
  std::optional<QuantizationSummary> quantization = {};

  // totals
  std::uint64_t files = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t tensor_count = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t parameters = 0;

  std::vector<InspectionRow> parts = {};  // by bytes, largest first
  std::vector<InspectionRow> roles = {};  // likewise
  GroupBy by = GroupBy::kPart;
  std::vector<InspectionRow> groups = {};  // for dtype, layer and file; empty otherwise
  bool lists_tensors = false;              // whether they were asked for; there may be none
  std::vector<InspectionTensor> tensors = {};

  std::vector<Finding> findings = {};  // worst first, then by code
  ReadTotals reads = {};
  double read_seconds = 0.0;

  friend bool operator==(const Inspection&, const Inspection&) = default;
};

struct InspectOptions {
  GroupBy by = GroupBy::kPart;
  enum class Tensors : std::uint8_t { kLeaveOut, kList };
  Tensors tensors = Tensors::kLeaveOut;
  // Rows of a stored output layer that are compared with the embedding, spread over the table;
  // their positions are fixed, so that the same file gives the same answer.
  std::uint64_t sampled_rows = 16;
};

// `reads` and `read_seconds` are left for the caller, who knows when it all began.
// Adds to the checkpoint's findings: TIED_HEAD_STORED, TIED_HEAD_MISSING.
// Errors: those of reading the sampled rows.
[[nodiscard]] Result<Inspection> inspect(const model::Checkpoint& checkpoint,
                                         const InspectOptions& options = {});

// The order of an inspection's findings: worst first, then by code and message.
void sort_findings(std::vector<Finding>& findings);

}  // namespace gridscope::analysis
