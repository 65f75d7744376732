#include "gridscope/core/json.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "gridscope/core/text.hpp"

namespace gridscope {
namespace {

// The keys of one open object. Most objects hold a handful, where a scan of a short vector is
// cheaper than hashing; a header or index holds many.
class KeySet {
 public:
  // False when the key is there already.
  bool insert(const std::string& key) {
    if (many_.empty() && few_.size() < kFew) {
      for (const std::string& known : few_) {
        if (known == key) return false;
      }
      few_.push_back(key);
      return true;
    }
    if (many_.empty()) {
      many_.insert(few_.begin(), few_.end());
      few_.clear();
    }
    return many_.insert(key).second;
  }

 private:
  static constexpr std::size_t kFew = 8;
  std::vector<std::string> few_;
  std::unordered_set<std::string> many_;
};

// nlohmann's SAX events, checked and handed on. It calls back with `false` to stop; the reason
// waits in error_.
class Adapter final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Adapter(JsonHandler& handler, const JsonLimits& limits, DuplicateKeys duplicates)
      : handler_(handler), limits_(limits), duplicates_(duplicates) {}

  bool null() override { return take(handler_.on_null()); }
  bool boolean(bool value) override { return take(handler_.on_bool(value)); }
  bool number_integer(number_integer_t value) override { return take(handler_.on_signed(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return take(handler_.on_unsigned(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return take(handler_.on_real(value, text));
  }
  bool string(string_t& value) override { return take(handler_.on_string(std::move(value))); }
  bool binary(binary_t& /*value*/) override {
    return take(fail(ErrorCode::kInternal, "binary value in JSON text"));
  }
  bool start_object(std::size_t /*elements*/) override {
    keys_.emplace_back();
    return enter() && take(handler_.on_begin_object());
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return take(handler_.on_end_object());
  }
  bool start_array(std::size_t /*elements*/) override {
    return enter() && take(handler_.on_begin_array());
  }
  bool end_array() override {
    --depth_;
    return take(handler_.on_end_array());
  }
  bool key(string_t& value) override {
    if (duplicates_ == DuplicateKeys::kReject && !keys_.back().insert(value)) {
      return take(fail(ErrorCode::kCorrupt, fmt::format("duplicate key {}", quote(value)),
                       "write each key once"));
    }
    return take(handler_.on_key(std::move(value)));
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    error_ = Error{ErrorCode::kCorrupt,
                   fmt::format("not valid JSON at byte {}: {}", position, reason(error.what()))};
    positioned_ = true;
    return false;
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  // Whether the error's message says where in the text it is.
  [[nodiscard]] bool names_position() const { return positioned_; }

 private:
  bool take(Status status) {
    if (!status) error_ = std::move(status).error();
    return status.has_value();
  }

  bool enter() {
    if (++depth_ <= limits_.max_depth) return true;
    return take(fail(ErrorCode::kLimit,
                     fmt::format("JSON is nested deeper than {} levels", limits_.max_depth)));
  }

  // nlohmann's own words after its "[json.exception...] parse error at line 1, column 2: " prefix,
  // with whatever it quotes of the text made printable.
  static std::string reason(std::string_view what) {
    if (const auto at = what.find(": "); at != std::string_view::npos) what.remove_prefix(at + 2);
    return printable(what, 160);
  }

  JsonHandler& handler_;
  const JsonLimits& limits_;
  const DuplicateKeys duplicates_;
  std::size_t depth_ = 0;
  std::vector<KeySet> keys_;
  std::optional<Error> error_;
  bool positioned_ = false;
};

constexpr bool is_json_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// What nlohmann accepts and the format does not: a byte order mark in front, and NUL (where it
// takes the text to end).
Status check_edges(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    return fail(ErrorCode::kCorrupt, "not valid JSON at byte 0: it starts with a byte order mark");
  }
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(ErrorCode::kCorrupt, fmt::format("not valid JSON at byte {}: a NUL byte", nul));
  }
  return {};
}

// Builds the tree. Open containers stand on a stack; a finished value goes into the top one.
class TreeBuilder final : public JsonHandler {
 public:
  Status on_null() override { return put(JsonValue()); }
  Status on_bool(bool value) override { return put(JsonValue(value)); }
  Status on_signed(std::int64_t value) override { return put(JsonValue(value)); }
  Status on_unsigned(std::uint64_t value) override { return put(JsonValue(value)); }
  Status on_real(double value, std::string_view /*text*/) override { return put(JsonValue(value)); }
  Status on_string(std::string&& value) override { return put(JsonValue(std::move(value))); }
  Status on_key(std::string&& key) override {
    open_.back().key = std::move(key);
    return {};
  }
  Status on_begin_object() override { return begin(JsonValue::Object()); }
  Status on_begin_array() override { return begin(JsonValue::Array()); }
  Status on_end_object() override { return end(); }
  Status on_end_array() override { return end(); }

  [[nodiscard]] JsonValue take() { return std::move(root_); }

 private:
  struct Open {
    JsonValue::Storage container;
    std::string key = {};  // of the member that comes next, in an object
  };

  Status begin(JsonValue::Storage container) {
    open_.push_back({.container = std::move(container)});
    return {};
  }

  Status end() {
    JsonValue value(std::move(open_.back().container));
    open_.pop_back();
    return put(std::move(value));
  }

  Status put(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* object = std::get_if<JsonValue::Object>(&open_.back().container)) {
      object->emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      std::get<JsonValue::Array>(open_.back().container).push_back(std::move(value));
    }
    return {};
  }

  std::vector<Open> open_;
  JsonValue root_;
};

// `text` with Python's NaN, Infinity and -Infinity replaced by null; empty when there is none.
// Positions in errors after a replacement are those of the replaced text.
std::optional<std::string> without_non_finite(std::string_view text) {
  std::string out;
  std::size_t copied = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (!text.substr(i).starts_with(word)) continue;
        out.append(text.substr(copied, i - copied)).append("null");
        i += word.size() - 1;
        copied = i + 1;
        break;
      }
    }
  }
  if (copied == 0) return std::nullopt;
  return out.append(text.substr(copied));
}

// Walks over the text and tells where it is, which nlohmann's events do not.
class TrackingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  TrackingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  friend bool operator==(const TrackingIterator& a, const TrackingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const TrackingIterator& a, const TrackingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  const char** reached_;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Status read_json(std::span<const std::byte> bytes, JsonHandler& handler, const JsonLimits& limits,
                 DuplicateKeys duplicates) {
  const std::string_view text = as_text(bytes);
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::kLimit, fmt::format("JSON text of {} bytes, the limit is {}",
                                               text.size(), limits.max_bytes));
  }
  GRIDSCOPE_CHECK(check_edges(text));
  Adapter adapter(handler, limits, duplicates);
  const char* reached = text.data();
  const bool read =
      nlohmann::json::sax_parse(TrackingIterator(text.data(), &reached),
                                TrackingIterator(text.data() + text.size(), &reached), &adapter);
  if (read) return {};
  Error error = adapter.error().value_or(Error{ErrorCode::kCorrupt, "not valid JSON"});
  if (!adapter.names_position()) {
    error.message += fmt::format(" (JSON read up to byte {})", reached - text.data());
  }
  return tl::make_unexpected(std::move(error));
}

const JsonValue* JsonValue::find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  for (const Member& member : *members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits) {
  const std::optional<std::string> cleaned = without_non_finite(text);
  if (cleaned) text = *cleaned;
  TreeBuilder builder;
  GRIDSCOPE_CHECK(read_json(std::as_bytes(std::span(text)), builder, limits));
  return builder.take();
}

}  // namespace gridscope
