#pragma once

// What the JSON forms of all reports share: pieces that are written alike, and a reader of members
// that says which one is wrong.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/core/finding.hpp"
#include "gridscope/core/json.hpp"
#include "gridscope/core/observer.hpp"
#include "gridscope/core/result.hpp"

namespace gridscope::report {

using Json = nlohmann::ordered_json;

// ---- writing ------------------------------------------------------------------------------------

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// An array of what `make` turns each of `values` into.
template <typename T, typename Make>
Json array_json(const std::vector<T>& values, Make make) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(make(value));
  return array;
}

[[nodiscard]] Json finding_json(const Finding& finding);
[[nodiscard]] Json reads_json(const ReadTotals& reads, double seconds);

// With a line break at the end. A name that is no UTF-8 (GGUF allows it) is shown with replacement
// characters.
[[nodiscard]] std::string pretty(const Json& root);
// The same in one line.
[[nodiscard]] std::string compact(const Json& root);

// ---- reading ------------------------------------------------------------------------------------

// Which report it is, for errors.
struct ReportKind {
  std::string_view name;    // "inspection report"
  std::string_view remedy;  // how to make it anew
};

// Errors: kCorrupt without a schema, kUnsupported with another one.
[[nodiscard]] Status check_schema(const JsonValue& root, const ReportKind& kind,
                                  std::string_view expected);

// The members of one JSON object, by name. The first that is missing or of another kind is kept as
// the error of the whole reading; what is read after that has no meaning.
class Members {
 public:
  Members(const JsonValue& object, const ReportKind& kind, std::optional<Error>& error)
      : Members(object, kind, "", error) {}

  [[nodiscard]] const JsonValue& at(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return object_.find(key) != nullptr; }
  [[nodiscard]] bool is_null(std::string_view key) const { return at(key).is_null(); }

  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::uint64_t count(std::string_view key) const;
  [[nodiscard]] double real(std::string_view key) const;  // of either sign
  [[nodiscard]] std::optional<double> maybe_real(std::string_view key) const;
  [[nodiscard]] std::optional<bool> maybe_flag(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> maybe_integer(std::string_view key) const;

  [[nodiscard]] Members object(std::string_view key) const;
  // What `read` makes of every element of an array of objects.
  template <typename Read>
  [[nodiscard]] auto objects(std::string_view key, Read read) const {
    std::vector<decltype(read(*this))> values;
    const JsonValue::Array& elements = array(key);
    values.reserve(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      values.push_back(read(Members(elements[i], kind_, element_path(key, i), error_)));
    }
    return values;
  }
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  [[nodiscard]] std::vector<std::uint64_t> counts(std::string_view key) const;
  [[nodiscard]] std::map<std::string, std::uint64_t> count_of_each(std::string_view key) const;

  void refuse(std::string_view key, std::string_view expected) const;

 private:
  Members(const JsonValue& object, const ReportKind& kind, std::string path,
          std::optional<Error>& error);

  [[nodiscard]] const JsonValue::Array& array(std::string_view key) const;
  [[nodiscard]] std::string path_of(std::string_view key) const;
  [[nodiscard]] std::string element_path(std::string_view key, std::size_t index) const;

  const JsonValue& object_;
  const ReportKind& kind_;
  std::string path_;
  std::optional<Error>& error_;
};

[[nodiscard]] Finding read_finding(const Members& members);
[[nodiscard]] ReadTotals read_reads(const Members& members);

}  // namespace gridscope::report
