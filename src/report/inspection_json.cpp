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

namespace gridscope::report {
namespace {

using analysis::GroupBy;
using analysis::Inspection;
using analysis::InspectionRow;
using analysis::InspectionTensor;
using analysis::QuantizationSummary;
using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "gridscope.inspection/1";
constexpr std::uint64_t kMaxReportBytes = 2'000'000'000;  // two million tensors, listed

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

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

Json finding_json(const Finding& finding) {
  return {{"code", finding.code},       {"severity", severity_name(finding.severity)},
          {"message", finding.message}, {"remedy", finding.remedy},
          {"tensors", finding.tensors}, {"tensor_count", finding.tensor_count},
          {"bytes", finding.bytes}};
}

Json tensor_json(const InspectionTensor& tensor) {
  return {{"name", tensor.name},   {"file", tensor.file},     {"dtype", tensor.dtype},
          {"shape", tensor.shape}, {"offset", tensor.offset}, {"bytes", tensor.bytes},
          {"part", tensor.part},   {"role", tensor.role}};
}

// An array of what `make` turns each of `values` into.
template <typename T, typename Make>
Json array_json(const std::vector<T>& values, Make make) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(make(value));
  return array;
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

// The members of one JSON object, by name. The first that is missing or of another kind is kept as
// the error of the whole reading; what is read after that has no meaning.
class Members {
 public:
  Members(const JsonValue& object, std::string path, std::optional<Error>& error)
      : object_(object), path_(std::move(path)), error_(error) {
    if (object.object() == nullptr) refuse("", "an object");
  }

  [[nodiscard]] const JsonValue& at(std::string_view key) const {
    static const JsonValue kNothing;
    const JsonValue* value = object_.find(key);
    if (value == nullptr) refuse(key, "present");
    return value != nullptr ? *value : kNothing;
  }
  [[nodiscard]] bool has(std::string_view key) const { return object_.find(key) != nullptr; }

  [[nodiscard]] std::string text(std::string_view key) const {
    const std::string* value = at(key).string();
    if (value == nullptr) refuse(key, "a string");
    return value != nullptr ? *value : "";
  }

  [[nodiscard]] std::uint64_t count(std::string_view key) const {
    const std::uint64_t* value = at(key).unsigned_integer();
    if (value == nullptr) refuse(key, "a non-negative integer");
    return value != nullptr ? *value : 0;
  }

  [[nodiscard]] double real(std::string_view key) const {
    const JsonValue& value = at(key);
    if (value.real() != nullptr) return *value.real();
    if (value.unsigned_integer() != nullptr) return static_cast<double>(*value.unsigned_integer());
    refuse(key, "a non-negative number");
    return 0.0;
  }

  [[nodiscard]] std::optional<bool> maybe_flag(std::string_view key) const {
    const JsonValue& value = at(key);
    if (value.is_null()) return std::nullopt;
    if (value.boolean() != nullptr) return *value.boolean();
    refuse(key, "true, false or null");
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::int64_t> maybe_integer(std::string_view key) const {
    const JsonValue& value = at(key);
    if (value.is_null()) return std::nullopt;
    if (value.negative_integer() != nullptr) return *value.negative_integer();
    const std::uint64_t* number = value.unsigned_integer();
    if (number != nullptr && std::in_range<std::int64_t>(*number)) {
      return static_cast<std::int64_t>(*number);
    }
    refuse(key, "an integer or null");
    return std::nullopt;
  }

  [[nodiscard]] Members object(std::string_view key) const {
    return {at(key), path_of(key), error_};
  }

  // What `read` makes of every element of an array of objects.
  template <typename Read>
  [[nodiscard]] auto objects(std::string_view key, Read read) const {
    std::vector<decltype(read(*this))> values;
    const JsonValue::Array& elements = array(key);
    values.reserve(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      values.push_back(read(Members(elements[i], fmt::format("{}[{}]", path_of(key), i), error_)));
    }
    return values;
  }

  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> values;
    for (const JsonValue& element : array(key)) {
      if (element.string() == nullptr) refuse(key, "an array of strings");
      values.push_back(element.string() != nullptr ? *element.string() : "");
    }
    return values;
  }

  [[nodiscard]] std::vector<std::uint64_t> counts(std::string_view key) const {
    std::vector<std::uint64_t> values;
    for (const JsonValue& element : array(key)) {
      const std::uint64_t* value = element.unsigned_integer();
      if (value == nullptr) refuse(key, "an array of non-negative integers");
      values.push_back(value != nullptr ? *value : 0);
    }
    return values;
  }

  [[nodiscard]] std::map<std::string, std::uint64_t> count_of_each(std::string_view key) const {
    std::map<std::string, std::uint64_t> counts;
    const Members members = object(key);
    if (members.object_.object() == nullptr) return counts;
    for (const auto& [name, value] : *members.object_.object()) {
      counts.emplace(name, members.count(name));
    }
    return counts;
  }

  void refuse(std::string_view key, std::string_view expected) const {
    if (error_) return;
    error_ = Error{ErrorCode::kCorrupt,
                   fmt::format("inspection report: {} is not {}", quote(path_of(key)), expected),
                   "write the report anew with `gridscope inspect --format json`"};
  }

 private:
  [[nodiscard]] const JsonValue::Array& array(std::string_view key) const {
    static const JsonValue::Array kEmpty;
    const JsonValue::Array* value = at(key).array();
    if (value == nullptr) refuse(key, "an array");
    return value != nullptr ? *value : kEmpty;
  }

  [[nodiscard]] std::string path_of(std::string_view key) const {
    if (path_.empty() || key.empty()) return path_ + std::string(key);
    return fmt::format("{}.{}", path_, key);
  }

  const JsonValue& object_;
  std::string path_;
  std::optional<Error>& error_;
};

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

Severity read_severity(const Members& members) {
  const std::string name = members.text("severity");
  for (const Severity severity : {Severity::kNote, Severity::kWarning, Severity::kError}) {
    if (name == severity_name(severity)) return severity;
  }
  members.refuse("severity", "a severity");
  return Severity::kNote;
}

Finding read_finding(const Members& members) {
  return {.code = members.text("code"),
          .severity = read_severity(members),
          .message = members.text("message"),
          .remedy = members.text("remedy"),
          .tensors = members.texts("tensors"),
          .tensor_count = members.count("tensor_count"),
          .bytes = members.count("bytes")};
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

void read_reads(const Members& reads, Inspection& inspection) {
  inspection.reads = {.requests = reads.count("requests"),
                      .bytes = reads.count("bytes"),
                      .cache_hits = reads.count("cache_hits")};
  inspection.read_seconds = reads.real("seconds");
}

Status check_schema(const JsonValue& root) {
  const JsonValue* schema = root.find("schema");
  if (schema == nullptr || schema->string() == nullptr) {
    return fail(ErrorCode::kCorrupt, "inspection report: \"schema\" is missing",
                "give a report that gridscope wrote as JSON");
  }
  if (*schema->string() == kSchema) return {};
  return fail(ErrorCode::kUnsupported, fmt::format("report of schema {}, expected {}",
                                                   quote(*schema->string()), quote(kSchema)));
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
  root["reads"] = {{"requests", inspection.reads.requests},
                   {"bytes", inspection.reads.bytes},
                   {"cache_hits", inspection.reads.cache_hits},
                   {"seconds", inspection.read_seconds}};
  // A name that is no UTF-8 (GGUF allows it) is shown with replacement characters.
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<Inspection> parse_inspection(std::string_view json) {
  GRIDSCOPE_TRY(const JsonValue root, parse_json(json, {.max_bytes = kMaxReportBytes}));
  GRIDSCOPE_CHECK(check_schema(root));
  std::optional<Error> error;
  const Members members(root, "", error);
  Inspection inspection;
  read_model(members, inspection);
  read_totals(members, inspection);
  inspection.parts = read_rows(members, "parts", kPartKey);
  inspection.roles = read_rows(members, "roles", kRoleKey);
  if (members.has("groups")) read_groups(members.object("groups"), inspection);
  inspection.lists_tensors = members.has("tensors");
  if (inspection.lists_tensors) inspection.tensors = members.objects("tensors", read_tensor);
  inspection.findings = members.objects("findings", read_finding);
  read_reads(members.object("reads"), inspection);
  if (error) return tl::make_unexpected(*std::move(error));
  return inspection;
}

}  // namespace gridscope::report
