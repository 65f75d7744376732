#include "gridscope/core/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gridscope {
namespace {

TEST(Printable, LeavesTextAlone) {
  EXPECT_EQ(printable("model.layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(printable("größe 模型 \U0001F600 \u00A0"), "größe 模型 \U0001F600 \u00A0");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, EscapesControls) {
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\x0Ab\\x09c\\x0Dd");
  EXPECT_EQ(printable("\x1B[31mred"), "\\x1B[31mred");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7F"), "\\x7F");
}

TEST(Printable, EscapesC1ControlsThatSomeTerminalsObey) {
  EXPECT_EQ(printable("\u0080"), "\\xC2\\x80");
  EXPECT_EQ(printable("\u009B31m"), "\\xC2\\x9B31m");
  EXPECT_EQ(printable("\u009F"), "\\xC2\\x9F");
}

TEST(Printable, EscapesWhatReordersOrHidesText) {
  for (const char* mark :
       {"\u00AD", "\u061C", "\u180E", "\u200B", "\u200E", "\u200F", "\u2028", "\u2029", "\u202A",
        "\u202E", "\u2060", "\u2066", "\u2069", "\u206F", "\uFEFF", "\uFFF9", "\U000E0041"}) {
    EXPECT_TRUE(printable(mark).starts_with("\\x")) << printable(mark);
  }
}

TEST(Printable, KeepsTheNeighboursOfThoseMarks) {
  for (const char* sign : {"\u00AC", "\u00AE", "\u061B", "\u2010", "\u2027", "\u202F", "\u205F",
                           "\u2070", "\uFFFD", "\U000E0100"}) {
    EXPECT_EQ(printable(sign), sign);
  }
}

TEST(Printable, EscapesInvalidUtf8ByteByByte) {
  EXPECT_EQ(printable("a\xFFz"), "a\\xFFz");
  EXPECT_EQ(printable("\xC3"), "\\xC3");                             // cut off
  EXPECT_EQ(printable("\xC0\xAF"), "\\xC0\\xAF");                    // overlong
  EXPECT_EQ(printable("\xE0\x80\xAF"), "\\xE0\\x80\\xAF");           // overlong
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xED\\xA0\\x80");           // surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST(Printable, CutsBetweenCharactersOnly) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("aé", 2), "a...");
  EXPECT_EQ(printable("a\n", 4), "a...");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 203);
}

RC_GTEST_PROP(Printable, GivesCleanUtf8ForAnyBytes, (const std::string& bytes)) {
  const std::string shown = printable(bytes);
  RC_ASSERT(is_valid_utf8(shown));
  RC_ASSERT(printable(shown, 1000) == shown);
  for (const char c : shown) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
}

TEST(Quote, PutsQuotesAround) {
  EXPECT_EQ(quote("a\nb"), "\"a\\x0Ab\"");
}

TEST(WithThousands, GroupsByThree) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(1234567), "1,234,567");
  EXPECT_EQ(with_thousands(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(CountOf, TakesThePluralForAllButOne) {
  EXPECT_EQ(count_of(0, "tensor"), "0 tensors");
  EXPECT_EQ(count_of(1, "tensor"), "1 tensor");
  EXPECT_EQ(count_of(2504, "tensor"), "2,504 tensors");
}

TEST(FormatGb, DividesByTheirUnit) {
  EXPECT_EQ(format_gb(4698000000), "4.698");
  EXPECT_EQ(format_gib(4697620480), "4.375");
  EXPECT_EQ(format_gb(805306368), "0.805");
  EXPECT_EQ(format_gib(805306368), "0.750");
}

TEST(FormatBytes, TakesTheLargestUnitAboveOne) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(128 * 1024), "128.0 KiB");
  EXPECT_EQ(format_bytes(1024 * 1024), "1.0 MiB");
  EXPECT_EQ(format_bytes(4697620480), "4.375 GiB");
  EXPECT_EQ(format_bytes(3ULL << 50), "3072.000 TiB");
}

TEST(Utf8, TellsWhereItStopsBeingWellFormed) {
  EXPECT_EQ(valid_utf8_prefix("abc"), 3);
  EXPECT_EQ(valid_utf8_prefix("größe"), 7);
  EXPECT_EQ(valid_utf8_prefix("ab\xFFz"), 2);
  EXPECT_EQ(valid_utf8_prefix("ab\xE2\x82"), 2);
  EXPECT_EQ(valid_utf8_prefix("sixteen letters.\xFFz"), 16);
  EXPECT_EQ(valid_utf8_prefix("größe und Länge, ab\xE2"), 22);
  EXPECT_TRUE(is_valid_utf8("\U0010FFFF\uD7FF\uE000"));
  EXPECT_FALSE(is_valid_utf8("\xED\xBF\xBF"));
  EXPECT_FALSE(is_valid_utf8("\xF8\x88\x80\x80\x80"));
}

}  // namespace
}  // namespace gridscope
