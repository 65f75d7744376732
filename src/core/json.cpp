#include "gridscope/core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <deque>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "gridscope/core/text.hpp"

// Headers and indexes are plain strings and whole numbers by the million, which a library's lexer
// takes byte by byte. The scanner reads those at the speed of memory and leaves the rest to the
// library: strings with escapes, real numbers, and to say what is wrong with a text.

namespace gridscope {
namespace {

using Json = nlohmann::json;

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

// Why the library refuses a text, in its own words without the "[json.exception...] parse error at
// line 1, column 2: " in front, with whatever they quote of the text made printable.
std::string reason(std::string_view what) {
  if (const auto at = what.find("] "); at != std::string_view::npos) what.remove_prefix(at + 2);
  if (what.starts_with("parse error at ")) what.remove_prefix(what.find(": ") + 2);
  return printable(what, 160);
}

// What is wrong with a text that the scanner refused, having come to `stopped`.
Error syntax_error(std::string_view text, std::size_t stopped, std::uint64_t first_byte,
                   const Positions& positions) {
  const auto at = [&](std::size_t bytes_read) {
    return first_byte + positions.original(bytes_read == 0 ? 0 : bytes_read - 1);
  };
  constexpr const char* kMessage = "not valid JSON at byte {}: {}";
  try {
    const auto keep_nothing = [](int, Json::parse_event_t, Json&) { return false; };
    [[maybe_unused]] const Json read = Json::parse(text, keep_nothing);
  } catch (const Json::parse_error& error) {
    return {ErrorCode::kCorrupt, fmt::format(kMessage, at(error.byte), reason(error.what()))};
  } catch (const Json::out_of_range& error) {  // a number beyond double
    return {ErrorCode::kCorrupt, fmt::format(kMessage, at(stopped), reason(error.what()))};
  }
  return {ErrorCode::kInternal,
          fmt::format("the JSON scanner stopped at byte {} of a valid text", at(stopped))};
}

// Whether every byte stands for itself. All are looked at, without a branch, so that the compiler
// can take them many at a time.
bool is_plain(std::string_view string) {
  bool odd = false;
  for (const char c : string) odd |= static_cast<unsigned char>(c - 0x20) > 0x5F || c == '\\';
  return !odd;
}

// One pass over a text without NUL. A function that returns false ends it: either failure_ says
// why, or the text is no JSON.
class Scanner {
 public:
  Scanner(std::string_view text, JsonHandler& handler, const JsonLimits& limits,
          DuplicateKeys duplicates)
      : text_(text), handler_(handler), limits_(limits), duplicates_(duplicates) {}

  Status run(const Positions& positions) {
    if (value()) {
      skip_space();
      if (at_ == text_.size()) return {};
    }
    if (!failure_) {
      return tl::make_unexpected(syntax_error(text_, at_, limits_.first_byte, positions));
    }
    failure_->message = fmt::format("{} (JSON read up to byte {})", failure_->message,
                                    limits_.first_byte + positions.original(failed_at_));
    return tl::make_unexpected(*std::move(failure_));
  }

 private:
  bool value() {
    skip_space();
    switch (peek()) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return string() && take(handler_.on_string(string_));
      case 't':
        return word("true") && take(handler_.on_bool(true));
      case 'f':
        return word("false") && take(handler_.on_bool(false));
      case 'n':
        return word("null") && take(handler_.on_null());
      default:
        return number();
    }
  }

  bool object() {
    ++at_;
    keys_.begin_object();
    if (!enter() || !take(handler_.on_begin_object())) return false;
    if (!next_is('}')) {
      do {
        if (!member()) return false;
      } while (next_is(','));
      if (!next_is('}')) return false;
    }
    --depth_;
    return check_keys() && take(handler_.on_end_object());
  }

  bool member() {
    skip_space();
    if (peek() != '"' || !string()) return false;
    if (duplicates_ == DuplicateKeys::kReject) keys_.add(lasting_string(), at_);
    return take(handler_.on_key(string_)) && next_is(':') && value();
  }

  bool array() {
    ++at_;
    if (!enter() || !take(handler_.on_begin_array())) return false;
    if (!next_is(']')) {
      do {
        if (!value()) return false;
      } while (next_is(','));
      if (!next_is(']')) return false;
    }
    --depth_;
    return take(handler_.on_end_array());
  }

  // Reads the string that starts here into string_.
  bool string() {
    const std::size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos) return false;
    string_ = text_.substr(at_ + 1, end - at_ - 1);
    if (!is_plain(string_)) return decoded_string();
    at_ = end + 1;
    return true;
  }

  // One with escapes or letters beyond ASCII: the library checks and decodes it.
  bool decoded_string() {
    std::size_t end = text_.find_first_of("\"\\", at_ + 1);
    while (end < text_.size() && text_[end] == '\\') end = text_.find_first_of("\"\\", end + 2);
    if (end == std::string_view::npos) return false;
    const Json value = Json::parse(text_.substr(at_, end + 1 - at_), nullptr, false);
    if (value.is_discarded()) return false;
    string_ = decoded_ = value.get<std::string>();
    at_ = end + 1;
    return true;
  }

  // string_ as a view of the text, which lasts, or of a copy of what was decoded.
  std::string_view lasting_string() {
    return string_.data() == decoded_.data() ? escaped_.emplace_back(string_) : string_;
  }

  bool number() {
    const std::size_t begin = at_;
    bool whole = !accept('-');
    if (!accept('0') && !digits()) return false;
    if (accept('.')) {
      whole = false;
      if (!digits()) return false;
    }
    if (accept('e') || accept('E')) {
      whole = false;
      if (!accept('+')) accept('-');
      if (!digits()) return false;
    }
    const std::string_view written = text_.substr(begin, at_ - begin);
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(written.data(), written.data() + written.size(), value);
    if (whole && parsed.ec == std::errc()) return take_number(handler_.on_unsigned(value));
    return odd_number(written);
  }

  // Any other than a whole number of 64 bits is converted by the library.
  bool odd_number(std::string_view written) {
    const Json value = Json::parse(written, nullptr, false);
    if (value.is_discarded()) return false;
    return take_number(value.is_number_float() ? handler_.on_real(value.get<double>(), written)
                                               : handler_.on_signed(value.get<std::int64_t>()));
  }

  bool digits() {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > begin;
  }

  bool word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  bool next_is(char c) {
    skip_space();
    return accept(c);
  }

  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  // NUL at the end.
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(Status status) { return status.has_value() || stop(std::move(status).error(), at_); }

  // A number ends only with the byte after it.
  bool take_number(Status status) {
    return status.has_value() || stop(std::move(status).error(), std::min(at_ + 1, text_.size()));
  }

  bool stop(Error error, std::size_t position) {
    failure_ = std::move(error);
    failed_at_ = position;
    return false;
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

  const std::string_view text_;
  JsonHandler& handler_;
  const JsonLimits& limits_;
  const DuplicateKeys duplicates_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::string_view string_;  // of the text, or decoded_
  std::string decoded_;
  KeyStack keys_;
  std::deque<std::string> escaped_;
  std::optional<Error> failure_;
  std::size_t failed_at_ = 0;
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
  Status on_string(std::string_view value) override { return put(std::string(value)); }
  Status on_key(std::string_view key) override {
    open_.back().key = key;
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

}  // namespace

Status read_json(std::span<const std::byte> text, JsonHandler& handler, const JsonLimits& limits,
                 DuplicateKeys duplicates) {
  const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
  GRIDSCOPE_CHECK(check_text(view, limits));
  return Scanner(view, handler, limits, duplicates).run({});
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
  Scanner scanner(finite.text(), builder, limits, DuplicateKeys::kReject);
  GRIDSCOPE_CHECK(scanner.run(finite.positions()));
  return builder.take();
}

}  // namespace gridscope
