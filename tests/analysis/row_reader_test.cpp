#include "gridscope/analysis/row_reader.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "analysis/small_models.hpp"
#include "support/fakes.hpp"

namespace gridscope::analysis {
namespace {

using quant::RowBlock;
using quant::RowRange;
using test::Fails;
using test::IsOk;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Ten rows of two: 0 0.5 / 1 1.5 / ..
class RowReaderTest : public ::testing::Test {
 protected:
  RowReaderTest() {
    std::vector<double> values;
    for (int row = 0; row < 10; ++row) {
      values.push_back(row);
      values.push_back(row + 0.5);
    }
    test::SmallModel model;
    model.values("model.layers.0.mlp.up_proj.weight", values, {10, 2});
    use(model);
  }

  void use(const test::SmallModel& model) {
    checkpoint = test::checkpoint_of(model.tensors, model.config);
    weights = model::list_weights(checkpoint);
  }

  RowReader open(const model::RowSelection& rows, std::uint64_t columns = 2) {
    auto reader = RowReader::open(checkpoint, weights.front(), rows, columns);
    EXPECT_THAT(reader, IsOk());
    return *std::move(reader);
  }

  // The first column of some rows, from a tile of `tile` rows of the pair.
  static std::vector<double> read(const RowReader& reader, RowRange tile, RowRange rows) {
    const RowBlock block = decode(reader, tile, rows);
    std::vector<double> first;
    for (std::uint64_t row = 0; row < block.rows; ++row) {
      first.push_back(block.row_values(row).front());
    }
    return first;
  }
  static RowBlock decode(const RowReader& reader, RowRange tile, RowRange rows) {
    LoadedTile loaded;
    EXPECT_THAT(reader.load(tile, loaded), IsOk());
    RowBlock block;
    RowBlock scratch;
    EXPECT_THAT(reader.decode(loaded.tile, rows, block, scratch), IsOk());
    std::uint64_t read = 0;
    for (const auto& bytes : loaded.tile.bytes) read += bytes.size();
    EXPECT_EQ(read, reader.tile_bytes(tile));
    EXPECT_EQ(block.first_row, rows.first + reader.first_row());
    EXPECT_EQ(block.rows, rows.count);
    EXPECT_EQ(block.values.size(), block.rows * block.columns);
    return block;
  }

  model::Checkpoint checkpoint;
  std::vector<model::Weight> weights;
};

TEST_F(RowReaderTest, ReadsNeighboursAndNoOthers) {
  const RowReader reader = open({.first = 2, .count = 8});
  EXPECT_TRUE(reader.is_contiguous());
  EXPECT_EQ(reader.covering({.first = 3, .count = 2}), (RowRange{.first = 5, .count = 2}));
  EXPECT_EQ(reader.tile_bytes({.first = 3, .count = 2}), 8U);
  EXPECT_THAT(read(reader, {.first = 3, .count = 5}, {.first = 4, .count = 2}), ElementsAre(6, 7));
}

TEST_F(RowReaderTest, ReadsEveryOtherRow) {
  const RowReader reader = open({.first = 1, .count = 5, .stride = 2});
  EXPECT_FALSE(reader.is_contiguous());
  EXPECT_EQ(reader.covering({.first = 1, .count = 2}), (RowRange{.first = 3, .count = 3}));
  EXPECT_THAT(read(reader, {.first = 0, .count = 5}, {.first = 0, .count = 5}),
              ElementsAre(1, 3, 5, 7, 9));
  EXPECT_THAT(read(reader, {.first = 1, .count = 3}, {.first = 2, .count = 2}), ElementsAre(5, 7));
}

TEST_F(RowReaderTest, TurnsRotatedHeadsBack) {
  const RowReader reader = open({.first = 2, .count = 8, .rotary_head = 4});
  EXPECT_EQ(reader.covering({.first = 1, .count = 2}), (RowRange{.first = 2, .count = 4}));
  EXPECT_EQ(reader.covering({.first = 3, .count = 2}), (RowRange{.first = 2, .count = 8}));
  EXPECT_THAT(read(reader, {.first = 0, .count = 8}, {.first = 0, .count = 8}),
              ElementsAre(2, 4, 3, 5, 6, 8, 7, 9));
  EXPECT_THAT(read(reader, {.first = 4, .count = 4}, {.first = 5, .count = 2}), ElementsAre(8, 7));
}

TEST_F(RowReaderTest, ReadsAcrossAWeightWhoseInputsComeFirst) {
  const quant::LeveledWeight levels = test::on_grid(12, 8, 8);
  test::Format transposed = test::plain_format(Dtype::kF32);
  transposed.like.order = quant::WeightSpec::Order::kInputMajor;
  test::SmallModel model{.config = R"({"model_type": "gpt2"})"};
  model.weight("h.0.attn.c_attn", levels, transposed);
  use(model);
  const RowReader reader = open({.first = 4, .count = 8}, 8);
  const RowBlock block = decode(reader, {.first = 1, .count = 6}, {.first = 2, .count = 3});
  const std::vector<double> products = test::products_of(levels);
  EXPECT_THAT(block.values, ElementsAreArray(std::span(products).subspan(6 * 8, 3 * 8)));
}

TEST_F(RowReaderTest, KeepsLevelsScalesAndZerosOfScatteredRows) {
  quant::LeveledWeight levels = test::on_grid(16, 64, 32);
  for (int i = 0; i < 32; ++i) levels.zeros.push_back(static_cast<std::int16_t>(i % 7 - 3));
  test::SmallModel model;
  model.weight("model.layers.0.mlp.up_proj", levels, test::int4_format());
  use(model);
  const RowReader reader = open({.first = 1, .count = 8, .stride = 2}, 64);
  const RowBlock block = decode(reader, {.first = 0, .count = 8}, {.first = 2, .count = 3});
  const std::vector<double> products = test::products_of(levels);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint64_t row = 5 + 2 * i;
    EXPECT_THAT(block.row_values(i), ElementsAreArray(std::span(products).subspan(row * 64, 64)));
    EXPECT_THAT(std::span(block.levels).subspan(i * 64, 64),
                ElementsAreArray(std::span(levels.levels).subspan(row * 64, 64)));
    EXPECT_THAT(std::span(block.scales).subspan(i * 2, 2),
                ElementsAreArray(std::span(levels.scales).subspan(row * 2, 2)));
    EXPECT_THAT(std::span(block.zeros).subspan(i * 2, 2),
                ElementsAreArray(std::span(levels.zeros).subspan(row * 2, 2)));
  }
}

// Bytes behind a cache, and the same bytes past it.
class CachedSource final : public io::ByteSource {
 public:
  explicit CachedSource(std::shared_ptr<const io::ByteSource> file) : file_(std::move(file)) {}
  [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return file_->identity(); }
  [[nodiscard]] Status read_at(std::uint64_t /*offset*/,
                               std::span<std::byte> /*into*/) const override {
    return fail(ErrorCode::kInternal, "the cache was asked");
  }
  [[nodiscard]] const io::ByteSource& uncached() const override { return *file_; }

 private:
  std::shared_ptr<const io::ByteSource> file_;
};

TEST_F(RowReaderTest, ReadsPastTheCache) {
  auto& source = checkpoint.files.front().source;
  source = std::make_shared<CachedSource>(source);
  EXPECT_THAT(read(open({.count = 10}), {.first = 9, .count = 1}, {.first = 9, .count = 1}),
              ElementsAre(9));
}

// Streams rows of the pair, three at a time, and returns the first column of each block.
std::vector<std::vector<double>> stream(const RowReader& reader, RowRange rows) {
  std::vector<std::vector<double>> blocks;
  LoadedTile loaded;
  RowBlock block;
  RowBlock scratch;
  const auto keep = [&](RowRange part) -> Status {
    GRIDSCOPE_CHECK(reader.decode(loaded.tile, part, block, scratch));
    std::vector<double>& first = blocks.emplace_back();
    for (std::uint64_t row = 0; row < block.rows; ++row) {
      first.push_back(block.row_values(row).front());
    }
    return {};
  };
  EXPECT_THAT(reader.stream(rows, 3, loaded, keep), IsOk());
  return blocks;
}

// How many bytes the source of a checkpoint's only file was asked for at once, at the most.
std::uint64_t longest_read(const test::RecordingSource& source) {
  std::uint64_t longest = 0;
  for (const io::ByteRange& read : source.single_reads()) longest = std::max(longest, read.length);
  for (const auto& batch : source.batches()) {
    for (const io::ByteRange& read : batch) longest = std::max(longest, read.length);
  }
  return longest;
}

TEST_F(RowReaderTest, StreamsRowsThroughMemoryForABlock) {
  const RowReader reader = open({.first = 1, .count = 8});
  auto& source = checkpoint.files.front().source;
  std::vector<std::byte> bytes(source->size());
  ASSERT_THAT(source->read_at(0, bytes), IsOk());
  const auto recording =
      std::make_shared<test::RecordingSource>(io::make_memory_source(std::move(bytes), {}));
  source = recording;
  EXPECT_THAT(stream(reader, {.first = 0, .count = 8}),
              ElementsAre(ElementsAre(1, 2, 3), ElementsAre(4, 5, 6), ElementsAre(7, 8)));
  EXPECT_THAT(stream(reader, {.first = 6, .count = 2}), ElementsAre(ElementsAre(7, 8)));
  EXPECT_EQ(longest_read(*recording), 3U * 2 * 2);
}

TEST_F(RowReaderTest, StreamsWhatLiesInStripsAfterReadingAllOfIt) {
  EXPECT_THAT(stream(open({.first = 1, .count = 4, .stride = 2}), {.first = 0, .count = 4}),
              ElementsAre(ElementsAre(1, 3, 5), ElementsAre(7)));
}

TEST_F(RowReaderTest, EndsAStreamWithTheUsersFailure) {
  LoadedTile loaded;
  int used = 0;
  const auto refuse = [&](RowRange) -> Status {
    ++used;
    return fail(ErrorCode::kUnsupported, "no");
  };
  for (const std::uint64_t stride : {1U, 2U}) {
    EXPECT_THAT(open({.count = 5, .stride = stride}).stream({.count = 5}, 2, loaded, refuse),
                Fails(ErrorCode::kUnsupported, "no"));
  }
  EXPECT_EQ(used, 2);
}

TEST_F(RowReaderTest, PassesErrorsOfReadingOn) {
  const RowReader reader = open({.count = 10});
  auto& source = checkpoint.files.front().source;
  source = std::make_shared<test::FaultySource>(
      io::make_memory_source(std::vector<std::byte>(source->size()), {}),
      test::FaultPlan{.fault_at = source->size() - 1});
  LoadedTile loaded;
  EXPECT_THAT(reader.load({.first = 0, .count = 9}, loaded), IsOk());
  EXPECT_THAT(reader.load({.first = 0, .count = 10}, loaded),
              Fails(ErrorCode::kUnavailable, HasSubstr("")));
}

TEST_F(RowReaderTest, RefusesWeightsOfAnotherShape) {
  const auto open_with = [&](std::uint64_t rows, std::uint64_t columns) {
    return RowReader::open(checkpoint, weights.front(), {.count = rows}, columns);
  };
  EXPECT_THAT(open_with(10, 3), Fails(ErrorCode::kCorrupt,
                                      HasSubstr("decodes to 10 rows of 2, expected row 9 of 3")));
  EXPECT_THAT(open_with(11, 2), Fails(ErrorCode::kCorrupt, HasSubstr("up_proj")));
}

// 8 x 40 weights in blocks of 64: each row starts elsewhere in a block.
TEST_F(RowReaderTest, RefusesToScatterBlocksThatRunOverRows) {
  auto spec = quant::pack(test::on_grid(5, 64, 64), test::nf4_format().like);
  ASSERT_THAT(spec, IsOk());
  const auto state = test::to_bytes(R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16",
                                        "shape": [8, 40]})");
  (*spec)[quant::Companion::kQuantState] =
      quant::StoredTensor{.dtype = Dtype::kU8, .shape = {state.size()}, .data = state};
  test::SmallModel model;
  model.stored("model.layers.0.mlp.up_proj", *spec, test::nf4_format());
  use(model);
  EXPECT_THAT(RowReader::open(checkpoint, weights.front(), {.count = 8}, 40), IsOk());
  EXPECT_THAT(RowReader::open(checkpoint, weights.front(), {.count = 4, .stride = 2}, 40),
              Fails(ErrorCode::kUnsupported, HasSubstr("run over the ends of rows")));
}

}  // namespace
}  // namespace gridscope::analysis
