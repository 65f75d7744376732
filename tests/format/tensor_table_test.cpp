#include "gridscope/format/tensor_table.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>

namespace gridscope::format {
namespace {

using ::testing::Optional;
using ::testing::Pointee;

TEST(TensorTable, AnElementCountIsTheProductOfTheShape) {
  TensorInfo tensor;
  EXPECT_EQ(tensor.elements(), 1U);
  tensor.shape = {2, 3, 4};
  EXPECT_EQ(tensor.elements(), 24U);
  tensor.shape = {0, std::uint64_t{1} << 63, 4};
  EXPECT_EQ(tensor.elements(), 0U);
}

TEST(TensorTable, FindsMetadataByKey) {
  const TensorTable table{.tensors = {}, .metadata = {{"format", "pt"}, {"empty", ""}}};
  EXPECT_THAT(table.find_metadata("format"), Pointee(std::string("pt")));
  EXPECT_THAT(table.find_metadata("empty"), Pointee(std::string()));
  EXPECT_EQ(table.find_metadata("Format"), nullptr);
}

TEST(StorageBytes, CountsPlainTypesAndBlocks) {
  EXPECT_THAT(storage_bytes(Dtype::kBF16, 3), Optional(6U));
  EXPECT_THAT(storage_bytes(Dtype::kC64, 3), Optional(24U));
  EXPECT_THAT(storage_bytes(Dtype::kQ4_0, 64), Optional(36U));
  EXPECT_THAT(storage_bytes(Dtype::kF32, 0), Optional(0U));
}

TEST(StorageBytes, PackedTypesMustEndOnAByte) {
  EXPECT_THAT(storage_bytes(Dtype::kF4, 2), Optional(1U));
  EXPECT_EQ(storage_bytes(Dtype::kF4, 3), std::nullopt);
  EXPECT_THAT(storage_bytes(Dtype::kF6E2M3, 4), Optional(3U));
  EXPECT_EQ(storage_bytes(Dtype::kF6E3M2, 6), std::nullopt);
}

TEST(StorageBytes, RefusesPartialBlocksAndOverflow) {
  EXPECT_EQ(storage_bytes(Dtype::kQ4_0, 33), std::nullopt);
  EXPECT_EQ(storage_bytes(Dtype::kF64, std::uint64_t{1} << 58), std::nullopt);
  EXPECT_THAT(storage_bytes(Dtype::kF64, (std::uint64_t{1} << 58) - 1),
              Optional((std::uint64_t{1} << 61) - 8));
}

TEST(FindRepeated, GivesTheFirstNameThatWasThereBefore) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(find_repeated(Names{}), std::nullopt);
  EXPECT_EQ(find_repeated(Names{"a", "b", "A", ""}), std::nullopt);
  EXPECT_THAT(find_repeated(Names{"a", "b", "c", "b", "a", "a"}), Optional(3U));
}

}  // namespace
}  // namespace gridscope::format
