// The scanner against the library that it replaces where texts are large: the JSON of all fixtures,
// texts with every construct, and thousands of damaged copies of them must give the same events,
// and be refused at the same byte.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "gridscope/core/json.hpp"
#include "gridscope/core/text.hpp"
#include "support/matchers.hpp"

namespace gridscope {
namespace {

using nlohmann::json;
using ::testing::SizeIs;

// What a reader makes of a text: its events, and where it gives up.
struct Reading {
  std::string events;
  std::string refusal;
};

class Scanned final : public JsonHandler {
 public:
  Status on_null() override { return add("null"); }
  Status on_bool(bool value) override { return add(value ? "true" : "false"); }
  Status on_signed(std::int64_t value) override { return add(fmt::format("i{}", value)); }
  Status on_unsigned(std::uint64_t value) override { return add(fmt::format("u{}", value)); }
  Status on_real(double value, std::string_view text) override {
    return add(fmt::format("r{}={}", text, value));
  }
  Status on_string(std::string_view value) override { return add(fmt::format("'{}'", value)); }
  Status on_key(std::string_view key) override { return add(fmt::format("{}:", key)); }
  Status on_begin_object() override { return add("{"); }
  Status on_end_object() override { return add("}"); }
  Status on_begin_array() override { return add("["); }
  Status on_end_array() override { return add("]"); }

  Reading reading;

 private:
  Status add(const std::string& event) {
    reading.events += event + "\n";
    return {};
  }
};

class LibraryEvents final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return handler_.on_null().has_value(); }
  bool boolean(bool value) override { return handler_.on_bool(value).has_value(); }
  bool number_integer(std::int64_t value) override { return handler_.on_signed(value).has_value(); }
  bool number_unsigned(std::uint64_t value) override {
    return handler_.on_unsigned(value).has_value();
  }
  bool number_float(double value, const std::string& text) override {
    return handler_.on_real(value, text).has_value();
  }
  bool string(std::string& value) override { return handler_.on_string(value).has_value(); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override {
    return handler_.on_begin_object().has_value();
  }
  bool key(std::string& value) override { return handler_.on_key(value).has_value(); }
  bool end_object() override { return handler_.on_end_object().has_value(); }
  bool start_array(std::size_t /*elements*/) override {
    return handler_.on_begin_array().has_value();
  }
  bool end_array() override { return handler_.on_end_array().has_value(); }
  bool parse_error(std::size_t read, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    handler_.reading.refusal = fmt::format("not valid JSON at byte {}", read == 0 ? 0 : read - 1);
    return false;
  }

  [[nodiscard]] Reading reading() const { return handler_.reading; }

 private:
  Scanned handler_;
};

Reading by_scanner(std::string_view text) {
  Scanned handler;
  const Status read =
      read_json(test::bytes_of(text), handler, {.max_depth = 1000}, DuplicateKeys::kReport);
  if (!read) {
    const std::string& message = read.error().message;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << message;
    handler.reading.refusal = message.substr(0, message.find(':'));
  }
  return handler.reading;
}

Reading by_library(std::string_view text) {
  LibraryEvents events;
  json::sax_parse(text, &events);
  return events.reading();
}

// Every construct, in its usual and its odd forms.
constexpr std::array<std::string_view, 14> kConstructs = {
    R"({"a": [1, -2, 1.50, "x"], "b": {"c": null, "d": true}, "e": false})",
    R"( { } )",
    R"([[], [[]], {}, {"": []}])",
    R"("")",
    R"(["\"", "\\", "\/", "\b\f\n\r\t", "\u00e9\u20AC", "\ud83d\ude00", "a\u0000b", "\\\\\""])",
    R"(["\ud83d", "\udc00\ud83d", "\x", "\u12", "\"])",
    "[\"\xC3\xA9\", \"\xE2\x82\xAC\", \"\xF0\x9F\x98\x80\", \"\x7F\"]",
    "{\"\xE9\": 1, \"\xED\xA0\x80\": 2, \"\xC0\xAF\": \"\xF5\"}",
    "[\"\x1F\", \"\t\"]",
    R"([0, -0, 10, 18446744073709551615, 18446744073709551616, -9223372036854775808])",
    R"([-9223372036854775809, 0.0, -0.0, 1e2, 1E+2, 1e-2, 0e0, 2.5e-400, 1e308])",
    R"([1e999, -1e999, 01, +1, .5, 1., 1e, 1e+, -, --1, 1-2, 0x10])",
    "\t{\r\n\"data_offsets\" :[ 0 ,\n18446744073709551615\t] }\n",
    R"([true, false, null, tru, nul, NaN, Infinity, nulll])",
};

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Texts as the format hands them to the reader: an index, or what follows the length of a header.
std::vector<std::string> fixture_texts() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GRIDSCOPE_FIXTURES)) {
    const bool header = entry.path().extension() == ".safetensors" ||
                        entry.path().parent_path().filename() == "safetensors_header";
    const bool index = entry.path().extension() == ".json" ||
                       entry.path().parent_path().filename() == "safetensors_index";
    if (!header && !index) continue;
    std::string text = read_text(entry.path());
    if (header) text.erase(0, 8);
    if (text.size() < 20'000) texts.push_back(std::move(text));
  }
  return texts;
}

// Reads a text in both ways, unless the reader refuses such texts before it scans them.
void compare(std::string_view text) {
  if (text.find('\0') != std::string_view::npos || text.starts_with("\xEF\xBB\xBF")) return;
  const Reading scanned = by_scanner(text);
  const Reading expected = by_library(text);
  EXPECT_EQ(scanned.refusal, expected.refusal) << quote(text);
  EXPECT_EQ(scanned.events, expected.events) << quote(text);
}

// A copy with some bytes changed, cut out, doubled or put in.
std::string damaged(std::string text, std::mt19937& random) {
  constexpr std::string_view kBytes = "\"\\{}[]:,0123456789-+.eEutfn/ \n\x1F\x7F\x80\xC3\xED\xF0";
  const auto below = [&](std::size_t limit) { return random() % limit; };
  for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 8) + 1);
    const std::string_view byte = kBytes.substr(below(kBytes.size()), 1);
    switch (below(4)) {
      case 0:
        text.replace(at, std::min<std::size_t>(length, 1), byte);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.insert(at, byte);
    }
  }
  return text;
}

TEST(JsonLibrary, ReadsEveryConstructAlike) {
  for (const std::string_view text : kConstructs) {
    compare(text);
    for (std::size_t end = 0; end < text.size(); ++end) compare(text.substr(0, end));
    for (std::size_t begin = 1; begin < text.size(); ++begin) compare(text.substr(begin));
  }
}

TEST(JsonLibrary, ReadsTheFixturesAlike) {
  const std::vector<std::string> texts = fixture_texts();
  ASSERT_THAT(texts, SizeIs(::testing::Ge(100)));
  for (const std::string& text : texts) compare(text);
}

TEST(JsonLibrary, ReadsDamagedTextsAlike) {
  std::vector<std::string> texts = fixture_texts();
  texts.insert(texts.end(), kConstructs.begin(), kConstructs.end());
  std::mt19937 random(20261130);
  for (const std::string& text : texts) {
    const std::size_t copies = text.size() < 1'000 ? 100 : 5;
    for (std::size_t i = 0; i < copies; ++i) compare(damaged(text, random));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gridscope
