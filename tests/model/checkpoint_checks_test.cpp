#include "gridscope/model/checkpoint_checks.hpp"

#include <gmock/gmock.h>

#include "gridscope/io/memory_source.hpp"
#include "model/tensor_values.hpp"
#include "support/matchers.hpp"

namespace gridscope::model {
namespace {

using format::Container;
using format::TensorInfo;
using test::Fails;
using test::IsOk;
using test::tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

FileHeader header(std::string path, std::vector<TensorInfo> tensors,
                  Container container = Container::kSafetensors) {
  FileHeader header;
  header.path = std::move(path);
  header.container = container;
  header.source = io::make_memory_source({}, {.name = header.path, .version = ""});
  header.table.tensors = std::move(tensors);
  return header;
}

WeightSet indexed(std::vector<std::pair<std::string, std::uint32_t>> entries,
                  std::optional<std::uint64_t> total = {}) {
  WeightSet set;
  set.index_path = "model.safetensors.index.json";
  set.index.shards = {"a", "b"};
  for (auto& [name, shard] : entries) set.index.entries.push_back({.tensor = name, .shard = shard});
  set.index.total_size = total;
  return set;
}

TensorInfo x() {
  return tensor("x", Dtype::kBF16, {4});
}
TensorInfo y() {
  return tensor("y", Dtype::kBF16, {8});
}

struct Checked {
  MergedTensors merged;
  std::vector<Finding> findings;
};

Checked check(std::vector<FileHeader> headers, const WeightSet& set) {
  Checked checked;
  checked.merged = merge_tables(headers, set, checked.findings);
  check_index(checked.merged, headers, set, checked.findings);
  return checked;
}

TEST(CheckpointChecks, MergesTablesInFileOrder) {
  const Checked checked =
      check({header("a", {x()}), header("b", {y()})}, indexed({{"x", 0}, {"y", 1}}, 24));
  ASSERT_THAT(checked.merged.tensors, SizeIs(2));
  EXPECT_EQ(checked.merged.tensors[1].name, "y");
  EXPECT_THAT(checked.merged.file_of, ElementsAre(0, 1));
  EXPECT_THAT(checked.findings, IsEmpty());
}

TEST(CheckpointChecks, KeepsTheCopyThatTheIndexNames) {
  const Checked checked =
      check({header("a", {x(), y()}), header("b", {x()})}, indexed({{"x", 1}, {"y", 0}}));
  ASSERT_THAT(checked.findings, SizeIs(1));
  EXPECT_EQ(checked.findings[0].code, "DUPLICATE_TENSOR");
  EXPECT_EQ(checked.findings[0].severity, Severity::kWarning);
  EXPECT_EQ(checked.findings[0].bytes, 8U);
  ASSERT_THAT(checked.merged.tensors, SizeIs(2));
  EXPECT_EQ(checked.merged.tensors[0].name, "y");
  EXPECT_EQ(checked.merged.tensors[1].name, "x");
  EXPECT_THAT(checked.merged.file_of, ElementsAre(0, 1));
}

TEST(CheckpointChecks, KeepsTheFirstCopyWithoutAnIndex) {
  const Checked checked =
      check({header("a", {x()}), header("b", {tensor("x", Dtype::kF32, {4})}), header("c", {x()})},
            WeightSet());
  ASSERT_THAT(checked.merged.tensors, SizeIs(1));
  EXPECT_THAT(checked.merged.file_of, ElementsAre(0));
  ASSERT_THAT(checked.findings, SizeIs(2));
  EXPECT_EQ(checked.findings[1].severity, Severity::kError);
}

TEST(CheckpointChecks, HoldsIndexAndShardsAgainstEachOther) {
  const Checked checked =
      check({header("a", {x()}), header("b", {y()})}, indexed({{"x", 1}, {"z", 0}}, 1000));
  ASSERT_THAT(checked.findings, SizeIs(3));
  EXPECT_EQ(checked.findings[0].code, "INDEX_PHANTOM_TENSOR");
  EXPECT_EQ(checked.findings[0].severity, Severity::kError);
  EXPECT_THAT(checked.findings[0].tensors, ElementsAre("x", "z"));
  EXPECT_EQ(checked.findings[1].code, "INDEX_MISSES_TENSOR");
  EXPECT_THAT(checked.findings[1].tensors, ElementsAre("y"));
  EXPECT_EQ(checked.findings[1].bytes, 16U);
  EXPECT_EQ(checked.findings[2].code, "INDEX_TOTAL_SIZE");
  EXPECT_EQ(checked.findings[2].severity, Severity::kNote);
  EXPECT_EQ(checked.findings[2].bytes, 1000U - 24);
}

TEST(CheckpointChecks, NamesATotalSizeThatIsNone) {
  WeightSet set = indexed({{"x", 0}, {"y", 1}});
  set.index.odd_total_size = "-5";
  const Checked checked = check({header("a", {x()}), header("b", {y()})}, set);
  ASSERT_THAT(checked.findings, SizeIs(1));
  EXPECT_EQ(checked.findings[0].code, "INDEX_TOTAL_SIZE");
  EXPECT_THAT(checked.findings[0].message, ::testing::HasSubstr("gives -5 as total_size"));
}

TEST(CheckpointChecks, SaysNothingOfShardsThatWereNotRead) {
  std::vector<FileHeader> headers;
  headers.push_back(header("a", {x()}));
  headers.push_back(header("b", {}));
  headers.back().source = nullptr;
  const Checked checked = check(std::move(headers), indexed({{"x", 0}, {"y", 1}}, 24));
  EXPECT_THAT(checked.findings, IsEmpty());
}

FileHeader split(std::string path, std::uint32_t number, std::uint32_t count,
                 std::uint64_t tensors) {
  FileHeader part = header(std::move(path), {x()}, Container::kGguf);
  part.split = format::GgufSplit{.number = number, .count = count, .tensors = tensors};
  return part;
}

TEST(CheckpointChecks, AcceptsACompleteSplit) {
  std::vector<Finding> findings;
  std::vector<FileHeader> headers;
  headers.push_back(split("a", 0, 2, 2));
  headers.push_back(split("b", 1, 2, 2));
  EXPECT_THAT(check_gguf_split(headers, findings), IsOk());
  EXPECT_THAT(findings, IsEmpty());
}

TEST(CheckpointChecks, ReportsAnIncompleteSplitOnce) {
  std::vector<Finding> findings;
  std::vector<FileHeader> headers;
  headers.push_back(split("a", 0, 3, 9));
  EXPECT_THAT(check_gguf_split(headers, findings), IsOk());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].code, "SHARD_MISSING");
  EXPECT_THAT(check_gguf_split(headers, findings), IsOk());
  EXPECT_THAT(findings, SizeIs(1));
}

TEST(CheckpointChecks, RefusesASplitThatContradictsItself) {
  const auto verdict = [](FileHeader a, FileHeader b) {
    std::vector<Finding> findings;
    std::vector<FileHeader> headers;
    headers.push_back(std::move(a));
    headers.push_back(std::move(b));
    return check_gguf_split(headers, findings);
  };
  EXPECT_THAT(verdict(split("a", 0, 2, 2), split("b", 0, 2, 2)),
              Fails(ErrorCode::kCorrupt, HasSubstr("b: ")));
  EXPECT_THAT(verdict(split("a", 0, 2, 2), split("b", 1, 3, 2)),
              Fails(ErrorCode::kCorrupt, HasSubstr("b: ")));
  EXPECT_THAT(verdict(split("a", 0, 2, 7), split("b", 1, 2, 7)),
              Fails(ErrorCode::kCorrupt, HasSubstr("7")));
}

TEST(CheckpointChecks, NamesPointersAndContainers) {
  std::vector<FileHeader> headers;
  headers.push_back(header("a", {x()}));
  FileHeader pointer;
  pointer.path = "b";
  pointer.container = Container::kLfsPointer;
  pointer.pointer = format::LfsPointer{.oid = "", .size = 4096};
  headers.push_back(pointer);
  std::vector<Finding> findings;
  EXPECT_THAT(check_containers(headers, findings), IsOk());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].code, "LFS_POINTER");
  EXPECT_THAT(findings[0].message, HasSubstr("4,096 bytes"));

  const std::vector<FileHeader> only = {pointer};
  EXPECT_THAT(check_containers(only, findings),
              Fails(ErrorCode::kUnsupported, HasSubstr("Git LFS")));

  FileHeader torch;
  torch.path = "c";
  torch.container = Container::kPyTorchZip;
  findings.clear();
  EXPECT_THAT(check_containers(std::vector{torch}, findings), IsOk());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].code, "UNSUPPORTED_CONTAINER");
}

}  // namespace
}  // namespace gridscope::model
