#include "gridscope/core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "gridscope/core/text.hpp"

namespace gridscope {
namespace {

// The keys of all open objects, one stack: an inner object ends before its outer one goes on.
// Whether a key was repeated is found out by sorting when its object ends, which takes no more
// memory than a view for each key and stays fast whatever names a stranger thinks up.
class KeyStack {
 public:
  struct Key {
    std::size_t hash;
    std::string_view name;
    std::size_t position;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  void begin_object() { begins_.push_back(keys_.size()); }

  void add(std::string_view name, std::size_t position) {
    keys_.push_back({std::hash<std::string_view>()(name), name, position});
  }

  // Ends the innermost object. Returns a second occurrence of one of its keys, if there is any.
  std::optional<Key> end_object() {
    const auto first = keys_.begin() + static_cast<std::ptrdiff_t>(begins_.back());
    std::sort(first, keys_.end());
    const auto same = [](const Key& a, const Key& b) {
      return a.hash == b.hash && a.name == b.name;
    };
    const auto twice = std::adjacent_find(first, keys_.end(), same);
    std::optional<Key> repeated;
    if (twice != keys_.end()) repeated = *std::next(twice);
    keys_.erase(first, keys_.end());
    begins_.pop_back();
    return repeated;
  }

 private:
  std::vector<Key> keys_;
  std::vector<std::size_t> begins_;
};

// Where a position of the text that is read was in the text as given, which lacks some bytes of it.
class Positions {
 public:
  // Positions come in rising order.
  void add_byte_before(std::size_t position) { added_before_.push_back(position); }

  [[nodiscard]] std::size_t original(std::size_t position) const {
    const auto later = std::ranges::upper_bound(added_before_, position);
    return position - static_cast<std::size_t>(later - added_before_.begin());
  }

 private:
  std::vector<std::size_t> added_before_;
};

// nlohmann's SAX events, checked and handed on. It calls back with `false` to stop; the reason
// waits in error_.
class Adapter final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Adapter(std::string_view text, JsonHandler& handler, const JsonLimits& limits,
          DuplicateKeys duplicates)
      : text_(text), handler_(handler), limits_(limits), duplicates_(duplicates) {}

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
    keys_.begin_object();
    return enter() && take(handler_.on_begin_object());
  }
  bool end_object() override {
    --depth_;
    return check_keys() && take(handler_.on_end_object());
  }
  bool start_array(std::size_t /*elements*/) override {
    return enter() && take(handler_.on_begin_array());
  }
  bool end_array() override {
    --depth_;
    return take(handler_.on_end_array());
  }
  bool key(string_t& value) override {
    if (duplicates_ == DuplicateKeys::kReject) keys_.add(lasting(value), reached_);
    return take(handler_.on_key(std::move(value)));
  }
  bool parse_error(std::size_t read, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    is_syntax_error_ = true;
    return stop({ErrorCode::kCorrupt, reason(error.what())}, read == 0 ? 0 : read - 1);
  }

  // The bytes that the lexer has taken so far, which nlohmann's events do not tell.
  std::size_t& reached() { return reached_; }

  // What ended the reading, and where: in the text that `positions` tells of.
  Error error(const Positions& positions) {
    const std::uint64_t position = limits_.first_byte + positions.original(error_at_);
    error_.message = is_syntax_error_
                         ? fmt::format("not valid JSON at byte {}: {}", position, error_.message)
                         : fmt::format("{} (JSON read up to byte {})", error_.message, position);
    return std::move(error_);
  }

 private:
  bool stop(Error error, std::size_t position) {
    error_ = std::move(error);
    error_at_ = position;
    return false;
  }

  bool take(Status status) {
    return status.has_value() || stop(std::move(status).error(), reached_);
  }

  bool enter() {
    if (++depth_ <= limits_.max_depth) return true;
    return take(fail(ErrorCode::kLimit,
                     fmt::format("JSON is nested deeper than {} levels", limits_.max_depth)));
  }

  bool check_keys() {
    const std::optional<KeyStack::Key> repeated = keys_.end_object();
    if (!repeated) return true;
    return stop({ErrorCode::kCorrupt, fmt::format("duplicate key {}", quote(repeated->name)),
                 "write each key once"},
                repeated->position);
  }

  // `key`, whose closing quote was read just now, as a view that lasts: of the text, where the key
  // nearly always stands as it is, else of a copy.
  std::string_view lasting(const std::string& key) {
    if (const std::size_t end = reached_ - 1; end > key.size()) {
      const std::string_view written = text_.substr(end - key.size(), key.size());
      if (written == key) return written;
    }
    return escaped_.emplace_back(key);
  }

  // nlohmann's own words without the "[json.exception...] parse error at line 1, column 2: " in
  // front, with whatever they quote of the text made printable.
  static std::string reason(std::string_view what) {
    if (const auto at = what.find("] "); at != std::string_view::npos) what.remove_prefix(at + 2);
    if (what.starts_with("parse error at ")) what.remove_prefix(what.find(": ") + 2);
    return printable(what, 160);
  }

  const std::string_view text_;
  JsonHandler& handler_;
  const JsonLimits& limits_;
  const DuplicateKeys duplicates_;
  std::size_t reached_ = 0;
  std::size_t depth_ = 0;
  KeyStack keys_;
  std::deque<std::string> escaped_;
  Error error_;
  std::size_t error_at_ = 0;
  bool is_syntax_error_ = false;
};

// The size, and what nlohmann accepts and the format does not: a byte order mark in front, and NUL
// (where it takes the text to end).
Status check_text(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::kLimit, fmt::format("JSON text of {} bytes, the limit is {}",
                                               text.size(), limits.max_bytes));
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("not valid JSON at byte {}: it starts with a byte order mark",
                            limits.first_byte));
  }
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("not valid JSON at byte {}: a NUL byte", limits.first_byte + nul));
  }
  return {};
}

// Builds the tree. Open containers stand on a stack; a finished value goes into the top one.
class TreeBuilder final : public JsonHandler {
 public:
  Status on_null() override { return put(nullptr); }
  Status on_bool(bool value) override { return put(value); }
  Status on_signed(std::int64_t value) override { return put(value); }
  Status on_unsigned(std::uint64_t value) override { return put(value); }
  Status on_real(double value, std::string_view /*text*/) override { return put(value); }
  Status on_string(std::string&& value) override { return put(std::move(value)); }
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
    std::string key;  // of the member that comes next, in an object
  };

  Status begin(JsonValue::Storage container) {
    open_.push_back({.container = std::move(container), .key = {}});
    return {};
  }

  Status end() {
    JsonValue::Storage finished = std::move(open_.back().container);
    open_.pop_back();
    return put(std::move(finished));
  }

  Status put(JsonValue::Storage&& value) {
    if (open_.empty()) {
      root_ = JsonValue(std::move(value));
    } else if (auto* object = std::get_if<JsonValue::Object>(&open_.back().container)) {
      object->emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      std::get<JsonValue::Array>(open_.back().container).emplace_back(std::move(value));
    }
    return {};
  }

  std::vector<Open> open_;
  JsonValue root_;
};

// A text with Python's NaN, Infinity and -Infinity replaced by null, padded with spaces to the same
// length where that is possible: a NaN makes the text one byte longer.
class FiniteText {
 public:
  explicit FiniteText(std::string_view text) {
    std::size_t copied = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (in_string && text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        in_string = !in_string;
      } else if (const std::size_t length = in_string ? 0 : word_at(text.substr(i)); length > 0) {
        text_.append(text.substr(copied, i - copied)).append("null");
        if (length < 4) positions_.add_byte_before(text_.size());
        if (length > 4) text_.append(length - 4, ' ');
        copied = i + length;
        i = copied - 1;
      }
    }
    text_.append(text.substr(copied));
  }

  [[nodiscard]] std::string_view text() const { return text_; }

  [[nodiscard]] const Positions& positions() const { return positions_; }

 private:
  static std::size_t word_at(std::string_view text) {
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (text.starts_with(word)) return word.size();
    }
    return 0;
  }

  std::string text_;
  Positions positions_;
};

// Walks over the text and counts.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(std::string_view::iterator at, std::size_t& count) : at_(at), count_(&count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  std::string_view::iterator at_;
  std::size_t* count_;
};

Status read_text(std::string_view text, Adapter& adapter, const Positions& positions) {
  std::size_t& reached = adapter.reached();
  if (nlohmann::json::sax_parse(CountingIterator(text.begin(), reached),
                                CountingIterator(text.end(), reached), &adapter)) {
    return {};
  }
  return tl::make_unexpected(adapter.error(positions));
}

}  // namespace

Status read_json(std::span<const std::byte> text, JsonHandler& handler, const JsonLimits& limits,
                 DuplicateKeys duplicates) {
  const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
  GRIDSCOPE_CHECK(check_text(view, limits));
  Adapter adapter(view, handler, limits, duplicates);
  return read_text(view, adapter, {});
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
  GRIDSCOPE_CHECK(check_text(text, limits));
  const FiniteText finite(text);
  TreeBuilder builder;
  Adapter adapter(finite.text(), builder, limits, DuplicateKeys::kReject);
  GRIDSCOPE_CHECK(read_text(finite.text(), adapter, finite.positions()));
  return builder.take();
}

}  // namespace gridscope
