#include "gridscope/analysis/inspection.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "gridscope/analysis/inspection_rows.hpp"
#include "gridscope/analysis/quantization_summary.hpp"
#include "gridscope/analysis/tied_head.hpp"
#include "gridscope/format/container.hpp"
#include "gridscope/model/checkpoint.hpp"

namespace gridscope::analysis {
namespace {

using model::Checkpoint;

constexpr std::array<std::pair<GroupBy, std::string_view>, 5> kGroupings = {{
    {GroupBy::kPart, "part"},
    {GroupBy::kRole, "role"},
    {GroupBy::kDtype, "dtype"},
    {GroupBy::kLayer, "layer"},
    {GroupBy::kFile, "file"},
}};

void describe_model(const Checkpoint& checkpoint, Inspection& inspection) {
  inspection.reference = checkpoint.repository.reference;
  inspection.kind = store::reference_kind_name(checkpoint.repository.kind);
  inspection.revision = checkpoint.repository.revision;
  inspection.commit = checkpoint.repository.commit;
  inspection.container = format::container_name(checkpoint.container);
  inspection.model_type = checkpoint.config.model_type;
  inspection.architectures = checkpoint.config.architectures;
  inspection.quantization = summarize_quantization(checkpoint);
}

void add_totals(const Checkpoint& checkpoint, Inspection& inspection) {
  inspection.files = checkpoint.files.size();
  for (const model::CheckpointFile& file : checkpoint.files) {
    inspection.file_bytes = saturating_add(inspection.file_bytes, file.bytes);
    inspection.header_bytes = saturating_add(inspection.header_bytes, file.header_bytes);
  }
  inspection.tensor_count = checkpoint.tensors.size();
  for (const InspectionRow& part : inspection.parts) {
    inspection.tensor_bytes = saturating_add(inspection.tensor_bytes, part.bytes);
    inspection.parameters = saturating_add(inspection.parameters, part.parameters);
  }
}

std::vector<InspectionTensor> list_tensors(const Checkpoint& checkpoint, const PartTable& parts) {
  std::vector<InspectionTensor> tensors;
  tensors.reserve(checkpoint.tensors.size());
  for (std::uint32_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const format::TensorInfo& info = checkpoint.tensors[i];
    tensors.push_back({.name = info.name,
                       .file = checkpoint.files[checkpoint.file_of[i]].path,
                       .dtype = std::string(dtype_name(info.dtype)),
                       .shape = info.shape,
                       .offset = info.offset,
                       .bytes = info.bytes,
                       .part = std::string(parts.key(parts.part_of(i))),
                       .role = std::string(model::role_key(checkpoint.names[i].role))});
  }
  return tensors;
}

bool has_own_rows(GroupBy by) {
  return by != GroupBy::kPart && by != GroupBy::kRole;
}

}  // namespace

void sort_findings(std::vector<Finding>& findings) {
  std::ranges::sort(findings, [](const Finding& a, const Finding& b) {
    return std::tie(b.severity, a.code, a.message) < std::tie(a.severity, b.code, b.message);
  });
}

std::string_view group_by_name(GroupBy by) {
  return std::ranges::find(kGroupings, by, &decltype(kGroupings)::value_type::first)->second;
}

std::optional<GroupBy> parse_group_by(std::string_view name) {
  const auto found = std::ranges::find(kGroupings, name, &decltype(kGroupings)::value_type::second);
  return found == kGroupings.end() ? std::nullopt : std::optional(found->first);
}

Result<Inspection> inspect(const Checkpoint& checkpoint, const InspectOptions& options) {
  Inspection inspection;
  describe_model(checkpoint, inspection);
  const PartTable parts(checkpoint);
  inspection.parts = inspection_rows(checkpoint, parts, GroupBy::kPart);
  inspection.roles = inspection_rows(checkpoint, parts, GroupBy::kRole);
  inspection.by = options.by;
  if (has_own_rows(options.by)) {
    inspection.groups = inspection_rows(checkpoint, parts, options.by);
  }
  add_totals(checkpoint, inspection);
  if (options.tensors == InspectOptions::Tensors::kList) {
    inspection.lists_tensors = true;
    inspection.tensors = list_tensors(checkpoint, parts);
  }
  inspection.findings = checkpoint.findings;
  GRIDSCOPE_TRY(std::optional<Finding> tied_head,
                check_tied_head(checkpoint, options.sampled_rows));
  if (tied_head) inspection.findings.push_back(*std::move(tied_head));
  sort_findings(inspection.findings);
  return inspection;
}

}  // namespace gridscope::analysis
