#include "gridscope/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace gridscope {
namespace {

constexpr double kGb = 1e9;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// The length of the well-formed UTF-8 sequence at the start of `text`, or 0. Table 3-7 of the
// Unicode standard: the second byte's range depends on the first, which keeps out surrogates and
// overlong forms.
std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto within = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return within(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return within(1, low, high) && within(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return within(1, low, high) && within(2, 0x80, 0xBF) && within(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

// Whether the next eight bytes are all ASCII, as nearly all of a header's are.
bool starts_with_ascii_word(std::string_view text) {
  std::uint64_t word = 0;
  if (text.size() < sizeof word) return false;
  std::memcpy(&word, text.data(), sizeof word);
  return (word & 0x8080808080808080U) == 0;
}

struct CodePoints {
  char32_t first;
  char32_t last;
};

// What moves the cursor, reorders text or does not show at all.
constexpr std::array kUnprintable = std::to_array<CodePoints>({
    {0x00, 0x1F},        // C0 controls
    {0x7F, 0x9F},        // DEL and the C1 controls
    {0xAD, 0xAD},        // soft hyphen
    {0x61C, 0x61C},      // Arabic letter mark
    {0x180E, 0x180E},    // Mongolian vowel separator
    {0x200B, 0x200F},    // zero width space to right-to-left mark
    {0x2028, 0x202E},    // line and paragraph separator, embeddings and overrides
    {0x2060, 0x206F},    // word joiner, isolates, deprecated format characters
    {0xFEFF, 0xFEFF},    // byte order mark
    {0xFFF9, 0xFFFB},    // interlinear annotation
    {0xE0000, 0xE007F},  // tags
});

// The code point of a well-formed sequence.
char32_t decode(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  char32_t code = byte(0) & (0x7FU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) code = (code << 6) | (byte(i) & 0x3FU);
  return code;
}

bool is_unprintable(std::string_view sequence) {
  const char32_t code = decode(sequence);
  return std::ranges::any_of(kUnprintable, [&](const CodePoints& range) {
    return range.first <= code && code <= range.last;
  });
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    std::string piece;
    if (length == 0 || is_unprintable(sequence)) {
      for (const char c : sequence) {
        piece += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
      }
    } else {
      piece = sequence;
    }
    if (out.size() + piece.size() > max_bytes) return out + "...";
    out += piece;
    text.remove_prefix(sequence.size());
  }
  return out;
}

std::string quote(std::string_view text) {
  return '"' + printable(text) + '"';
}

std::string with_thousands(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string count_of(std::uint64_t n, std::string_view singular) {
  return fmt::format("{} {}{}", with_thousands(n), singular, n == 1 ? "" : "s");
}

std::string format_gb(std::uint64_t bytes) {
  return fmt::format("{:.3f}", static_cast<double>(bytes) / kGb);
}

std::string format_gib(std::uint64_t bytes) {
  return fmt::format("{:.3f}", static_cast<double>(bytes) / kGib);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit >= 2 ? 3 : 1, kUnits[unit]);
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    if (starts_with_ascii_word(rest)) {
      rest.remove_prefix(sizeof(std::uint64_t));
      continue;
    }
    const std::size_t length = utf8_sequence(rest);
    if (length == 0) break;
    rest.remove_prefix(length);
  }
  return text.size() - rest.size();
}

}  // namespace gridscope
