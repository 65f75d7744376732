#include "gridscope/model/name_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gridscope::model {
namespace {

using Names = std::vector<std::string>;

auto name_in(const Names& names) {
  return [&names](std::uint32_t number) -> std::string_view { return names[number]; };
}

TEST(NameTable, FindsEveryNameAndNoOther) {
  Names names;
  for (int i = 0; i < 5000; ++i) names.push_back("layers." + std::to_string(i));
  NameTable table(names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(table.find_or_add(names[i], i, name_in(names)), i);
  }
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(table.find(names[i], name_in(names)), i);
  }
  EXPECT_FALSE(table.find("layers.5000", name_in(names)));
  EXPECT_FALSE(table.find("", name_in(names)));
}

TEST(NameTable, KeepsTheFirstOfOneName) {
  const Names names = {"a", "b", "a", "a"};
  NameTable table(names.size());
  EXPECT_EQ(table.find_or_add("a", 0, name_in(names)), 0U);
  EXPECT_EQ(table.find_or_add("b", 1, name_in(names)), 1U);
  EXPECT_EQ(table.find_or_add("a", 2, name_in(names)), 0U);
  EXPECT_EQ(table.find_or_add("a", 3, name_in(names)), 0U);
  EXPECT_EQ(table.find("a", name_in(names)), 0U);
}

TEST(NameTable, MayBeEmpty) {
  const Names names;
  EXPECT_FALSE(NameTable().find("a", name_in(names)));
  EXPECT_FALSE(NameTable(0).find("a", name_in(names)));
}

}  // namespace
}  // namespace gridscope::model
