// Written with nlohmann_json, read with the strict reader of core: what comes back may have been
// written by anybody.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "gridscope/report/inspection_report.hpp"
#include "json_parts.hpp"

namespace gridscope::report {
namespace {

using analysis::GroupBy;
using analysis::Inspection;
using analysis::InspectionRow;
using analysis::InspectionTensor;
using analysis::QuantizationSummary;

constexpr std::string_view kSchema = "gridscope.inspection/1";
constexpr ReportKind kSource = {.name = "inspection report",
                                .remedy =
                                    "write the report anew with `gridscope inspect "
                                    "--format json`"};
constexpr std::uint64_t kMaxReportBytes = 2'000'000'000;  // two million tensors, listed

Json quantization_json(const std::optional<QuantizationSummary>& quantization) {
  if (!quantization) return nullptr;
  return {{"method", quantization->method},
          {"format", quantization->format},
          {"bits", optional_json(quantization->bits)},
          {"group_size", optional_json(quantization->group_size)},
          {"symmetric", optional_json(quantization->symmetric)},
          {"config_source", quantization->config_source}};
}

// The members that hold a row's key between them, in the order of its slashes.
using KeyMembers = std::span<const std::string_view>;
constexpr std::array<std::string_view, 1> kPartKey = {"part"};
constexpr std::array<std::string_view, 3> kRoleKey = {"part", "role", "storage"};
constexpr std::array<std::string_view, 1> kGroupKey = {"key"};

// "transformer_body/attention/scales". A part may be the folder of a component, roles and kinds of
// storage are words of gridscope: the last slashes divide the key.
Json key_json(std::string_view key, KeyMembers names) {
  Json members;
  for (const std::string_view name : names) members[name] = "";
  for (const std::string_view name : names | std::views::drop(1) | std::views::reverse) {
    const std::size_t slash = key.rfind('/');
    members[name] = key.substr(slash + 1);
    key = key.substr(0, slash);
  }
  members[names.front()] = key;
  return members;
}

Json row_json(const InspectionRow& row, KeyMembers names) {
  Json json = key_json(row.key, names);
  json["title"] = row.title;
  json["tensors"] = row.tensors;
  json["bytes"] = row.bytes;
  json["share"] = row.share;
  json["parameters"] = row.parameters;
  json["bits_per_weight"] = row.bits_per_weight;
  json["dtypes"] = row.dtypes;
  json["stored_as"] = row.stored_as;
  return json;
}

Json tensor_json(const InspectionTensor& tensor) {
  return {{"name", tensor.name},   {"file", tensor.file},     {"dtype", tensor.dtype},
          {"shape", tensor.shape}, {"offset", tensor.offset}, {"bytes", tensor.bytes},
          {"part", tensor.part},   {"role", tensor.role}};
}

Json totals_json(const Inspection& inspection) {
  return {{"files", inspection.files},
          {"file_bytes", inspection.file_bytes},
          {"header_bytes", inspection.header_bytes},
          {"tensors", inspection.tensor_count},
          {"tensor_bytes", inspection.tensor_bytes},
          {"parameters", inspection.parameters}};
}

Json rows_json(const std::vector<InspectionRow>& rows, KeyMembers names) {
  return array_json(rows, [&](const InspectionRow& row) { return row_json(row, names); });
}

Json groups_json(const Inspection& inspection) {
  return {{"by", group_by_name(inspection.by)}, {"rows", rows_json(inspection.groups, kGroupKey)}};
}

QuantizationSummary read_quantization(const Members& members) {
  QuantizationSummary quantization{.method = members.text("method"),
                                   .format = members.text("format"),
                                   .bits = std::nullopt,
                                   .group_size = members.maybe_integer("group_size"),
                                   .symmetric = members.maybe_flag("symmetric"),
                                   .config_source = members.text("config_source")};
  const std::optional<std::int64_t> bits = members.maybe_integer("bits");
  if (bits && !std::in_range<std::uint32_t>(*bits)) members.refuse("bits", "a number of bits");
  if (bits) quantization.bits = static_cast<std::uint32_t>(*bits);
  return quantization;
}

InspectionRow read_row(const Members& members, KeyMembers names) {
  std::vector<std::string> key;
  for (const std::string_view name : names) key.push_back(members.text(name));
  return {.key = fmt::format("{}", fmt::join(key, "/")),
          .title = members.text("title"),
          .tensors = members.count("tensors"),
          .bytes = members.count("bytes"),
          .share = members.real("share"),
          .parameters = members.count("parameters"),
          .bits_per_weight = members.real("bits_per_weight"),
          .dtypes = members.count_of_each("dtypes"),
          .stored_as = members.text("stored_as")};
}

std::vector<InspectionRow> read_rows(const Members& members, std::string_view key,
                                     KeyMembers names) {
  return members.objects(key, [&](const Members& row) { return read_row(row, names); });
}

InspectionTensor read_tensor(const Members& members) {
  return {.name = members.text("name"),
          .file = members.text("file"),
          .dtype = members.text("dtype"),
          .shape = members.counts("shape"),
          .offset = members.count("offset"),
          .bytes = members.count("bytes"),
          .part = members.text("part"),
          .role = members.text("role")};
}

void read_model(const Members& root, Inspection& inspection) {
  const Members model = root.object("model");
  inspection.reference = model.text("reference");
  inspection.kind = model.text("kind");
  inspection.revision = model.text("revision");
  inspection.commit = model.text("commit");
  inspection.container = root.text("container");
  const Members architecture = root.object("architecture");
  inspection.model_type = architecture.text("model_type");
  inspection.architectures = architecture.texts("architectures");
  if (!root.at("quantization").is_null()) {
    inspection.quantization = read_quantization(root.object("quantization"));
  }
}

void read_totals(const Members& root, Inspection& inspection) {
  const Members totals = root.object("totals");
  inspection.files = totals.count("files");
  inspection.file_bytes = totals.count("file_bytes");
  inspection.header_bytes = totals.count("header_bytes");
  inspection.tensor_count = totals.count("tensors");
  inspection.tensor_bytes = totals.count("tensor_bytes");
  inspection.parameters = totals.count("parameters");
}

void read_groups(const Members& groups, Inspection& inspection) {
  const std::optional<GroupBy> by = analysis::parse_group_by(groups.text("by"));
  if (!by) groups.refuse("by", "a way of grouping");
  inspection.by = by.value_or(GroupBy::kPart);
  inspection.groups = read_rows(groups, "rows", kGroupKey);
}

}  // namespace

std::string inspection_json(const Inspection& inspection) {
  Json root = {
      {"schema", kSchema},
      {"model",
       {{"reference", inspection.reference},
        {"kind", inspection.kind},
        {"revision", inspection.revision},
        {"commit", inspection.commit}}},
      {"container", inspection.container},
      {"architecture",
       {{"model_type", inspection.model_type}, {"architectures", inspection.architectures}}},
      {"quantization", quantization_json(inspection.quantization)},
      {"totals", totals_json(inspection)}};
  root["parts"] = rows_json(inspection.parts, kPartKey);
  root["roles"] = rows_json(inspection.roles, kRoleKey);
  if (inspection.by != GroupBy::kPart) root["groups"] = groups_json(inspection);
  if (inspection.lists_tensors) root["tensors"] = array_json(inspection.tensors, tensor_json);
  root["findings"] = array_json(inspection.findings, finding_json);
  root["reads"] = reads_json(inspection.reads, inspection.read_seconds);
  return pretty(root);
}

Result<Inspection> parse_inspection(std::string_view json) {
  GRIDSCOPE_TRY(const JsonValue root, parse_json(json, {.max_bytes = kMaxReportBytes}));
  GRIDSCOPE_CHECK(check_schema(root, kSource, kSchema));
  std::optional<Error> error;
  const Members members(root, kSource, error);
  Inspection inspection;
  read_model(members, inspection);
  read_totals(members, inspection);
  inspection.parts = read_rows(members, "parts", kPartKey);
  inspection.roles = read_rows(members, "roles", kRoleKey);
  if (members.has("groups")) read_groups(members.object("groups"), inspection);
  inspection.lists_tensors = members.has("tensors");
  if (inspection.lists_tensors) inspection.tensors = members.objects("tensors", read_tensor);
  inspection.findings = members.objects("findings", read_finding);
  inspection.reads = read_reads(members.object("reads"));
  inspection.read_seconds = members.object("reads").real("seconds");
  if (error) return tl::make_unexpected(*std::move(error));
  return inspection;
}

}  // namespace gridscope::report
