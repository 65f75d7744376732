#pragma once

// Strict JSON reading for text that strangers wrote. Two ways in: events for large documents
// (headers, indexes) and a small document tree for configurations. Both refuse what libraries
// let pass: duplicate keys, a byte order mark and NUL bytes. An integer that does not fit 64 bits
// is never taken for one: it comes as a real number, as written. Every error names the byte
// position, counted from 0.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gridscope/core/result.hpp"

namespace gridscope {

enum class DuplicateKeys : std::uint8_t { kReject, kReport };

struct JsonLimits {
  std::size_t max_depth = 16;             // nesting of objects and arrays
  std::uint64_t max_bytes = 250'000'000;  // of the whole text
  std::uint64_t first_byte = 0;  // where the text lies in its file: errors count from there
};

// Receives a document as events, in order. A handler that returns an error ends the reading; the
// error is passed out with the byte position added. Views last as long as the call.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;

  [[nodiscard]] virtual Status on_null() = 0;
  [[nodiscard]] virtual Status on_bool(bool value) = 0;
  [[nodiscard]] virtual Status on_signed(std::int64_t value) = 0;     // negative integers and -0
  [[nodiscard]] virtual Status on_unsigned(std::uint64_t value) = 0;  // integers >= 0
  // A number with fraction or exponent, or an integer beyond 64 bits; `text` is as written.
  [[nodiscard]] virtual Status on_real(double value, std::string_view text) = 0;
  [[nodiscard]] virtual Status on_string(std::string_view value) = 0;
  [[nodiscard]] virtual Status on_key(std::string_view key) = 0;
  [[nodiscard]] virtual Status on_begin_object() = 0;
  [[nodiscard]] virtual Status on_end_object() = 0;
  [[nodiscard]] virtual Status on_begin_array() = 0;
  [[nodiscard]] virtual Status on_end_array() = 0;
};

// Reads one JSON text of UTF-8. Duplicate keys within one object are refused when the object ends,
// at the latest, unless `duplicates` says that the handler looks for them itself. Errors: kCorrupt
// (with the byte position), kLimit.
[[nodiscard]] Status read_json(std::span<const std::byte> text, JsonHandler& handler,
                               const JsonLimits& limits = {},
                               DuplicateKeys duplicates = DuplicateKeys::kReject);

// A JSON document as a tree. Objects keep the order in which keys were written.
class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Member = std::pair<std::string, JsonValue>;
  using Object = std::vector<Member>;
  using Storage = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double,
                               std::string, Array, Object>;

  JsonValue() = default;
  explicit JsonValue(Storage value) : value_(std::move(value)) {}

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  // Null when the value is of another kind.
  [[nodiscard]] const std::string* string() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* array() const { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* object() const { return std::get_if<Object>(&value_); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&value_); }
  // A non-negative integer; null for negative ones and for anything else.
  [[nodiscard]] const std::uint64_t* unsigned_integer() const {
    return std::get_if<std::uint64_t>(&value_);
  }
  [[nodiscard]] const std::int64_t* negative_integer() const {
    return std::get_if<std::int64_t>(&value_);
  }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&value_); }

  // The member of that name, or null when there is none or this is no object.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;

 private:
  Storage value_ = nullptr;
};

// Reads a whole document. Python writes NaN, Infinity and -Infinity into configurations; they are
// read as null. Errors: kCorrupt (with the byte position), kLimit.
[[nodiscard]] Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace gridscope
