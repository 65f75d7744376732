#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>

#include "quant/any_weight.hpp"
#include "quant/cross_vector.hpp"
#include "quant/tiles.hpp"

namespace gridscope::quant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WeightSpec bnb(Scheme scheme = Scheme::kBnbNf4) {
  return {.name = "q_proj", .scheme = scheme};
}

StoredTensor text_of(std::string_view text) {
  return {.dtype = Dtype::kU8, .shape = {text.size()}, .data = test::to_bytes(text)};
}

// The table 0 to 15 shows which code is where.
StoredTensor plain_map() {
  std::vector<double> map;
  for (int i = 0; i < 16; ++i) map.push_back(i);
  return floats_of(Dtype::kF32, {16}, map);
}

// 3 x 10 weights in blocks of 4: the last block has two, rows start within blocks.
WeightSpec small_spec() {
  WeightSpec spec = bnb();
  std::vector<std::uint8_t> bytes;
  for (unsigned t = 0; t < 15; ++t) {
    bytes.push_back(static_cast<std::uint8_t>((2 * t % 16) << 4U | (2 * t + 1) % 16));
  }
  spec[Companion::kCodes] = tensor_of(Dtype::kU8, {15, 1}, bytes);
  spec[Companion::kScale] = floats_of(Dtype::kF32, {8}, {1, 10, 100, 1000, 1, 10, 100, 1000});
  spec[Companion::kQuantMap] = plain_map();
  spec[Companion::kQuantState] =
      text_of(R"({"quant_type": "nf4", "blocksize": 4, "dtype": "bfloat16", "shape": [3, 10]})");
  return spec;
}

std::vector<double> small_values() {
  constexpr std::array kScales = {1.0, 10.0, 100.0, 1000.0};
  std::vector<double> values;
  for (std::size_t i = 0; i < 30; ++i) {
    values.push_back(static_cast<double>(i % 16) * kScales[i / 4 % 4]);
  }
  return values;
}

template <typename Edit>
void expect_refused(std::string_view message, Edit edit) {
  WeightSpec spec = small_spec();
  edit(spec);
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt, HasSubstr(message)));
}

void expect_bad_state(std::string_view message, std::string_view text) {
  expect_refused(message, [&](WeightSpec& spec) { spec[Companion::kQuantState] = text_of(text); });
}

TEST(BnbDecoder, RunsBlocksOverTheEndsOfRows) {
  const WeightSpec spec = small_spec();
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.values, small_values());
  EXPECT_EQ(block.stride, 3);
  EXPECT_THAT(block.scales, ElementsAre(1, 10, 100, 100, 1000, 1, 10, 100, 1000));
  EXPECT_THAT(block.zeros, IsEmpty());
  expect_any_rows_agree(spec);
  expect_whole_is_contiguous(spec);
}

// Byte 0x3C under 2: the NF4 numbers 3 and 12, doubled.
TEST(BnbDecoder, ReadsTheWorkedExample) {
  LeveledWeight weight = {.rows = 1, .columns = 2, .bits = 4, .group_size = 2};
  weight.levels = {3 - 8, 12 - 8};
  weight.scales = {2.0};
  const WeightSpec spec = packed(weight, bnb());
  EXPECT_THAT(spec.find(Companion::kCodes)->data, ElementsAre(std::byte{0x3c}));
  const RowBlock block = decoded(spec);
  EXPECT_FLOAT_EQ(static_cast<float>(block.values[0]), -0.78983498F);
  EXPECT_FLOAT_EQ(static_cast<float>(block.values[1]), 0.88141966F);
  EXPECT_THAT(block.levels, ElementsAre(3, 12));
}

// Sign and magnitude out of order: levels are ranks, -0 and 0 the same.
TEST(BnbDecoder, RanksTheCodesOfFp4) {
  WeightSpec spec = small_spec();
  spec.scheme = Scheme::kBnbFp4;
  spec[Companion::kQuantMap] =
      floats_of(Dtype::kF32, {16}, {0, .1, 8, 12, 4, 6, 2, 3, -0.0, -.1, -8, -12, -4, -6, -2, -3});
  spec[Companion::kQuantState] =
      text_of(R"({"quant_type": "fp4", "blocksize": 4, "shape": [3, 10]})");
  RowBlock block = decoded(spec);
  block.levels.resize(16);
  EXPECT_THAT(block.levels, ElementsAre(7, 8, 13, 14, 11, 12, 9, 10, 7, 6, 1, 0, 3, 2, 5, 4));
  EXPECT_EQ(decoder_of(spec)->layout().lowest_level, 0);
  EXPECT_EQ(decoder_of(spec)->layout().highest_level, 14);
}

TEST(BnbDecoder, RestoresNestedScalesInFloats) {
  WeightSpec spec = small_spec();
  spec[Companion::kScale] =
      tensor_of<std::uint8_t>(Dtype::kU8, {8}, {0, 1, 2, 3, 252, 253, 254, 255});
  std::vector<double> map;
  for (int i = 0; i < 256; ++i) map.push_back(i);
  spec[Companion::kNestedQuantMap] = floats_of(Dtype::kF32, {256}, map);
  spec[Companion::kNestedScale] = floats_of(Dtype::kF32, {2}, {0.1, 2.0});
  spec[Companion::kQuantState] =
      text_of(R"({"quant_type": "nf4", "blocksize": 4, "shape": [3, 10], "nested_blocksize": 6,)"
              R"( "nested_offset": 0.25, "nested_dtype": "float32"})");
  std::vector<double> expected;
  const std::array<int, 8> codes = {0, 1, 2, 3, 252, 253, 254, 255};
  for (std::size_t i = 0; i < 30; ++i) {
    const float step = i / 4 < 6 ? 0.1F : 2.0F;
    const float scale = static_cast<float>(codes.at(i / 4)) * step + 0.25F;
    expected.push_back(static_cast<double>(i % 16) * static_cast<double>(scale));
  }
  EXPECT_EQ(decoded(spec).values, expected);
  EXPECT_EQ(decoder_of(spec)->layout().scale_dtype, Dtype::kU8);
  expect_any_rows_agree(spec);
  spec[Companion::kNestedScale] = floats_of(Dtype::kF32, {1}, {0.1});
  EXPECT_THAT(
      make_decoder(spec),
      test::Fails(ErrorCode::kCorrupt, HasSubstr("its nested scale has 1 values, expected 2")));
  spec[Companion::kNestedQuantMap].reset();
  EXPECT_THAT(make_decoder(spec), test::Fails(ErrorCode::kCorrupt,
                                              HasSubstr("its nested quantization map is missing")));
}

// 15 bytes in numbers of four: one byte of padding.
TEST(BnbDecoder, ReadsBytesThatAreCalledNumbers) {
  WeightSpec spec = small_spec();
  spec[Companion::kCodes]->data.push_back(std::byte{0xff});
  for (const auto& [dtype, count] : {std::pair{Dtype::kF32, 4U}, {Dtype::kBF16, 8U}}) {
    spec[Companion::kCodes]->dtype = dtype;
    spec[Companion::kCodes]->shape = {count, 1};
    EXPECT_EQ(decoded(spec).values, small_values());
    expect_any_rows_agree(spec);
  }
}

TEST(BnbDecoder, ReadsAnOddNumberOfWeights) {
  WeightSpec spec = small_spec();
  spec[Companion::kQuantState] = text_of(R"({"quant_type": "nf4", "blocksize": 4, "shape": [29]})");
  const RowBlock block = decoded(spec);
  EXPECT_EQ(block.rows, 1);
  ASSERT_EQ(block.columns, 29);
  EXPECT_EQ(block.values[28], 12 * 1000);
}

TEST(BnbDecoder, RefusesIncompleteWeights) {
  for (const Companion companion :
       {Companion::kCodes, Companion::kScale, Companion::kQuantMap, Companion::kQuantState}) {
    expect_refused("its " + std::string(companion_name(companion)) + " is missing",
                   [&](WeightSpec& spec) { spec[companion].reset(); });
  }
}

TEST(BnbDecoder, RefusesStatesThatDoNotFitTheTensors) {
  expect_bad_state("its codes U8 [15, 1] do not hold the 3 x 12 weights of its quantization state",
                   R"({"quant_type": "nf4", "blocksize": 4, "shape": [3, 12]})");
  expect_bad_state("its scale F32 [8] has not one number for each of 5 blocks of 6",
                   R"({"quant_type": "nf4", "blocksize": 6, "shape": [3, 10]})");
  expect_bad_state("its quantization state says \"fp4\", expected \"nf4\"",
                   R"({"quant_type": "fp4", "blocksize": 4, "shape": [3, 10]})");
  expect_refused("its quantization map has 8 values, expected 16", [](WeightSpec& spec) {
    spec[Companion::kQuantMap] = floats_of(Dtype::kF32, {8}, std::vector<double>(8, 1.0));
  });
  expect_refused("its quantization map of row 0, group 2 is nan", [](WeightSpec& spec) {
    std::vector<double> map(16, 1.0);
    map[2] = std::numeric_limits<double>::quiet_NaN();
    spec[Companion::kQuantMap] = floats_of(Dtype::kF32, {16}, map);
  });
  expect_refused("its scale is U8 [8], expected F32",
                 [](WeightSpec& spec) { spec[Companion::kScale]->dtype = Dtype::kU8; });
}

TEST(BnbDecoder, RefusesStatesThatCannotBeRead) {
  expect_bad_state("its quantization state", "{");
  expect_bad_state("no usable \"quant_type\"", "{}");
  expect_bad_state("no usable \"quant_type\"", R"({"quant_type": 4})");
  expect_bad_state("no usable \"shape\"", R"({"quant_type": "nf4"})");
  expect_bad_state("no usable \"shape\"", R"({"quant_type": "nf4", "shape": []})");
  expect_bad_state("no usable \"shape\"", R"({"quant_type": "nf4", "shape": [3, 0]})");
  expect_bad_state("no usable \"shape\"", R"({"quant_type": "nf4", "shape": [3, -10]})");
  expect_bad_state(
      "no usable \"shape\"",
      R"({"quant_type": "nf4", "shape": [4294967296, 4294967296, 2], "blocksize": 4})");
  expect_bad_state("no usable \"blocksize\"", R"({"quant_type": "nf4", "shape": [3, 10]})");
  expect_bad_state("no usable \"blocksize\"",
                   R"({"quant_type": "nf4", "shape": [3, 10], "blocksize": 0})");
  expect_bad_state("no usable \"blocksize\"",
                   R"({"quant_type": "nf4", "shape": [3, 10], "blocksize": 1000000})");
  for (const std::string_view rest :
       {"", R"(, "nested_blocksize": 256)", R"(, "nested_blocksize": 256, "nested_offset": NaN)"}) {
    WeightSpec spec = small_spec();
    spec[Companion::kNestedScale] = floats_of(Dtype::kF32, {1}, {1});
    spec[Companion::kQuantState] = text_of(
        R"({"quant_type": "nf4", "shape": [3, 10], "blocksize": 4)" + std::string(rest) + "}");
    EXPECT_THAT(make_decoder(spec),
                test::Fails(ErrorCode::kCorrupt, HasSubstr("no usable \"nested_")));
  }
}

TEST(BnbDecoder, RefusesScalesThatAreNoNumbers) {
  WeightSpec spec = small_spec();
  spec[Companion::kScale] =
      floats_of(Dtype::kF32, {8}, {1, 1, 1, 1, std::numeric_limits<double>::infinity(), 1, 1, 1});
  EXPECT_THAT(decode_all(spec),
              test::Fails(ErrorCode::kCorrupt, HasSubstr("its scale of row 1, group 2 is inf")));
}

RC_GTEST_PROP(BnbDecoder, DecodesWhatWasPacked, ()) {
  const auto scheme = *rc::gen::element(Scheme::kBnbNf4, Scheme::kBnbFp4);
  LeveledWeight weight = any_weight({.rows = *rc::gen::inRange<std::uint64_t>(1, 6),
                                     .columns = 96,
                                     .bits = 4,
                                     .group_size = *rc::gen::element<std::uint64_t>(32, 96)},
                                    Zeros::kNone);
  const int middle = scheme == Scheme::kBnbNf4 ? 8 : 7;
  for (std::int16_t& level : weight.levels) {
    level = std::max<std::int16_t>(level, static_cast<std::int16_t>(-middle));
  }
  const RowBlock block = decoded(packed(weight, bnb(scheme)));
  for (std::size_t i = 0; i < weight.levels.size(); ++i) {
    RC_ASSERT(block.levels[i] == weight.levels[i] + middle);
  }
  RC_ASSERT(block.scales == weight.scales);
}

}  // namespace
}  // namespace gridscope::quant
