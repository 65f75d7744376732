#include "gridscope/model/name_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/tensor_values.hpp"

namespace gridscope::model {
namespace {

TEST(NameTable, FindsEveryNameAndNoOther) {
  std::vector<format::TensorInfo> tensors;
  for (int i = 0; i < 5000; ++i) {
    tensors.push_back(test::tensor("layers." + std::to_string(i), Dtype::kBF16, {1}));
  }
  const NameTable table(tensors);
  EXPECT_TRUE(table.copies().empty());
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(table.find(tensors, tensors[i].name), i);
  }
  EXPECT_FALSE(table.find(tensors, "layers.5000"));
  EXPECT_FALSE(table.find(tensors, ""));
}

TEST(NameTable, KeepsTheFirstOfCopies) {
  const std::vector<format::TensorInfo> tensors = {
      test::tensor("a", Dtype::kBF16, {1}), test::tensor("b", Dtype::kBF16, {1}),
      test::tensor("a", Dtype::kBF16, {1}), test::tensor("a", Dtype::kBF16, {1})};
  const NameTable table(tensors);
  EXPECT_EQ(table.find(tensors, "a"), 0U);
  ASSERT_EQ(table.copies().size(), 2U);
  EXPECT_EQ(table.copies()[0].second, 2U);
  EXPECT_EQ(table.copies()[1].first, 0U);
}

TEST(NameTable, MayBeEmpty) {
  EXPECT_FALSE(NameTable().find({}, "a"));
  EXPECT_FALSE(NameTable(std::span<const format::TensorInfo>()).find({}, "a"));
}

}  // namespace
}  // namespace gridscope::model
