#include "json_parts.hpp"

#include <fmt/format.h>

#include <utility>

#include "gridscope/core/text.hpp"

namespace gridscope::report {

Json finding_json(const Finding& finding) {
  return {{"code", finding.code},       {"severity", severity_name(finding.severity)},
          {"message", finding.message}, {"remedy", finding.remedy},
          {"tensors", finding.tensors}, {"tensor_count", finding.tensor_count},
          {"bytes", finding.bytes}};
}

Json reads_json(const ReadTotals& reads, double seconds) {
  return {{"requests", reads.requests},
          {"bytes", reads.bytes},
          {"cache_hits", reads.cache_hits},
          {"seconds", seconds}};
}

std::string pretty(const Json& root) {
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string compact(const Json& root) {
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status check_schema(const JsonValue& root, const ReportKind& kind, std::string_view expected) {
  const JsonValue* schema = root.find("schema");
  if (schema == nullptr || schema->string() == nullptr) {
    return fail(ErrorCode::kCorrupt, fmt::format("{}: \"schema\" is missing", kind.name),
                "give a report that gridscope wrote as JSON");
  }
  if (*schema->string() == expected) return {};
  return fail(ErrorCode::kUnsupported, fmt::format("report of schema {}, expected {}",
                                                   quote(*schema->string()), quote(expected)));
}

Members::Members(const JsonValue& object, const ReportKind& kind, std::string path,
                 std::optional<Error>& error)
    : object_(object), kind_(kind), path_(std::move(path)), error_(error) {
  if (object.object() == nullptr) refuse("", "an object");
}

const JsonValue& Members::at(std::string_view key) const {
  static const JsonValue kNothing;
  const JsonValue* value = object_.find(key);
  if (value == nullptr) refuse(key, "present");
  return value != nullptr ? *value : kNothing;
}

std::string Members::text(std::string_view key) const {
  const std::string* value = at(key).string();
  if (value == nullptr) refuse(key, "a string");
  return value != nullptr ? *value : "";
}

std::uint64_t Members::count(std::string_view key) const {
  const std::uint64_t* value = at(key).unsigned_integer();
  if (value == nullptr) refuse(key, "a non-negative integer");
  return value != nullptr ? *value : 0;
}

double Members::real(std::string_view key) const {
  const std::optional<double> value = maybe_real(key);
  if (!value) refuse(key, "a number");
  return value.value_or(0.0);
}

std::optional<double> Members::maybe_real(std::string_view key) const {
  const JsonValue& value = at(key);
  if (value.is_null()) return std::nullopt;
  if (value.real() != nullptr) return *value.real();
  if (value.unsigned_integer() != nullptr) return static_cast<double>(*value.unsigned_integer());
  if (value.negative_integer() != nullptr) return static_cast<double>(*value.negative_integer());
  refuse(key, "a number or null");
  return std::nullopt;
}

std::optional<bool> Members::maybe_flag(std::string_view key) const {
  const JsonValue& value = at(key);
  if (value.is_null()) return std::nullopt;
  if (value.boolean() != nullptr) return *value.boolean();
  refuse(key, "true, false or null");
  return std::nullopt;
}

std::optional<std::int64_t> Members::maybe_integer(std::string_view key) const {
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

Members Members::object(std::string_view key) const {
  return {at(key), kind_, path_of(key), error_};
}

std::vector<std::string> Members::texts(std::string_view key) const {
  std::vector<std::string> values;
  for (const JsonValue& element : array(key)) {
    if (element.string() == nullptr) refuse(key, "an array of strings");
    values.push_back(element.string() != nullptr ? *element.string() : "");
  }
  return values;
}

std::vector<std::uint64_t> Members::counts(std::string_view key) const {
  std::vector<std::uint64_t> values;
  for (const JsonValue& element : array(key)) {
    const std::uint64_t* value = element.unsigned_integer();
    if (value == nullptr) refuse(key, "an array of non-negative integers");
    values.push_back(value != nullptr ? *value : 0);
  }
  return values;
}

std::map<std::string, std::uint64_t> Members::count_of_each(std::string_view key) const {
  std::map<std::string, std::uint64_t> counts;
  const Members members = object(key);
  if (members.object_.object() == nullptr) return counts;
  for (const auto& [name, value] : *members.object_.object()) {
    counts.emplace(name, members.count(name));
  }
  return counts;
}

void Members::refuse(std::string_view key, std::string_view expected) const {
  if (error_) return;
  error_ = Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {} is not {}", kind_.name, quote(path_of(key)), expected),
                 std::string(kind_.remedy)};
}

const JsonValue::Array& Members::array(std::string_view key) const {
  static const JsonValue::Array kEmpty;
  const JsonValue::Array* value = at(key).array();
  if (value == nullptr) refuse(key, "an array");
  return value != nullptr ? *value : kEmpty;
}

std::string Members::path_of(std::string_view key) const {
  if (path_.empty() || key.empty()) return path_ + std::string(key);
  return fmt::format("{}.{}", path_, key);
}

std::string Members::element_path(std::string_view key, std::size_t index) const {
  return fmt::format("{}[{}]", path_of(key), index);
}

namespace {

Severity read_severity(const Members& members) {
  const std::string name = members.text("severity");
  for (const Severity severity : {Severity::kNote, Severity::kWarning, Severity::kError}) {
    if (name == severity_name(severity)) return severity;
  }
  members.refuse("severity", "a severity");
  return Severity::kNote;
}

}  // namespace

Finding read_finding(const Members& members) {
  return {.code = members.text("code"),
          .severity = read_severity(members),
          .message = members.text("message"),
          .remedy = members.text("remedy"),
          .tensors = members.texts("tensors"),
          .tensor_count = members.count("tensor_count"),
          .bytes = members.count("bytes")};
}

ReadTotals read_reads(const Members& members) {
  return {.requests = members.count("requests"),
          .bytes = members.count("bytes"),
          .cache_hits = members.count("cache_hits")};
}

}  // namespace gridscope::report
