#include "gridscope/model/packing.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "gridscope/model/scheme_detection.hpp"
#include "model/tensor_values.hpp"

namespace gridscope::model {
namespace {

using format::TensorInfo;
using test::tensor;
using Claim = QuantizationConfig::Scheme;

Packing measure(const std::vector<TensorInfo>& tensors, const Claim* claim = nullptr) {
  ModuleView view;
  view.claim = claim;
  for (const TensorInfo& t : tensors) view.add(split_suffix(t.name).suffix, t);
  return measure_packing(detect_scheme(view), view);
}

Claim claim_of(std::uint32_t bits, std::int64_t group_size) {
  Claim claim;
  claim.bits = bits;
  claim.group_size = group_size;
  return claim;
}

void expect_packing(const Packing& packing, std::uint32_t bits, std::int64_t group_size,
                    std::uint64_t parameters) {
  EXPECT_EQ(packing.bits, bits);
  EXPECT_EQ(packing.group_size, group_size);
  EXPECT_EQ(packing.parameters, parameters);
  EXPECT_EQ(packing.fault, "");
}

std::vector<TensorInfo> ct_packed(std::uint64_t rows, std::uint64_t words, std::uint64_t groups) {
  return {tensor("m.weight_packed", Dtype::kI32, {rows, words}),
          tensor("m.weight_scale", Dtype::kBF16, {rows, groups})};
}

TEST(Packing, SolvesCompressedTensorsFromShapes) {
  expect_packing(measure(ct_packed(6144, 192, 48)), 4, 32, 6144ULL * 1536);
  expect_packing(measure(ct_packed(8, 16, 1)), 4, -1, 8 * 128);
  const Claim eight = claim_of(8, -1);
  expect_packing(measure(ct_packed(8, 32, 1), &eight), 8, -1, 8 * 128);
  const Claim eight128 = claim_of(8, 128);
  expect_packing(measure(ct_packed(8, 64, 2), &eight128), 8, 128, 8 * 256);
}

TEST(Packing, KnowsBothGenerationsOfThreeBitWords) {
  const Claim three = claim_of(3, 32);
  expect_packing(measure(ct_packed(4, 12, 4), &three), 3, 32, 4 * 128);  // dense: 128 * 3 / 32
  expect_packing(measure(ct_packed(4, 13, 4), &three), 3, 32, 4 * 128);  // ten codes a word
}

TEST(Packing, FollowsARaggedLastGroup) {
  const Claim four = claim_of(4, 128);
  expect_packing(measure(ct_packed(4, 24, 2), &four), 4, 128, 4 * 192);
}

TEST(Packing, PrefersTheShapesToAWrongClaim) {
  const Claim wrong = claim_of(8, 128);
  const Packing packing = measure(ct_packed(64, 128, 8), &wrong);  // 1024 inputs, 4 bits, g128
  EXPECT_EQ(packing.fault, "");
  EXPECT_FALSE(packing.bits == 8 && packing.group_size == 128);
}

TEST(Packing, CountsStackedExperts) {
  expect_packing(measure({tensor("m.weight_packed", Dtype::kI32, {4, 8, 16}),
                          tensor("m.weight_scale", Dtype::kBF16, {4, 8, 4})}),
                 4, 32, 4 * 8 * 128);
}

TEST(Packing, SaysWhichShapesContradictEachOther) {
  const Packing packing = measure(ct_packed(4, 12, 97));
  EXPECT_EQ(packing.fault, "weights I32 [4, 12] do not fit scales BF16 [4, 97]");
  EXPECT_EQ(packing.parameters, 4U * 96);
}

TEST(Packing, SolvesGptqWithAndWithoutGroupIndex) {
  const std::vector<TensorInfo> four = {tensor("m.qweight", Dtype::kI32, {64, 96}),
                                        tensor("m.scales", Dtype::kF16, {4, 96})};
  expect_packing(measure(four), 4, 128, 512 * 96);
  std::vector<TensorInfo> eight = {tensor("m.qweight", Dtype::kI32, {128, 96}),
                                   tensor("m.scales", Dtype::kF16, {4, 96}),
                                   tensor("m.g_idx", Dtype::kI32, {512})};
  expect_packing(measure(eight), 8, 128, 512 * 96);
  const Claim three = claim_of(3, 128);
  expect_packing(measure({tensor("m.qweight", Dtype::kI32, {48, 96}),
                          tensor("m.scales", Dtype::kF16, {4, 96})},
                         &three),
                 3, 128, 512 * 96);
  eight[2] = tensor("m.g_idx", Dtype::kI32, {99});
  EXPECT_NE(measure(eight).fault, "");
}

// 512 inputs of four bits in words of 8, 16 and 64 bits.
TEST(Packing, SolvesGptqInWordsOfOtherTypes) {
  const std::vector<std::pair<Dtype, std::uint64_t>> cases = {
      {Dtype::kI8, 256}, {Dtype::kI16, 128}, {Dtype::kI64, 32}};
  for (const auto& [words, height] : cases) {
    expect_packing(
        measure({tensor("m.qweight", words, {height, 96}),
                 tensor("m.qzeros", words, {4, 96 * height / 512}),
                 tensor("m.scales", Dtype::kF16, {4, 96}), tensor("m.g_idx", Dtype::kI32, {512})}),
        4, 128, 512 * 96);
  }
}

// Of a stack each matrix may have a group index of its own.
TEST(Packing, SolvesStackedGptq) {
  for (const std::vector<std::uint64_t>& index : {std::vector<std::uint64_t>{512}, {3, 512}}) {
    expect_packing(measure({tensor("m.qweight", Dtype::kI32, {3, 64, 96}),
                            tensor("m.scales", Dtype::kF16, {3, 4, 96}),
                            tensor("m.g_idx", Dtype::kI32, index)}),
                   4, 128, 3 * 512 * 96);
  }
}

TEST(Packing, SolvesAwq) {
  expect_packing(
      measure({tensor("m.qweight", Dtype::kI32, {512, 12}),
               tensor("m.qzeros", Dtype::kI32, {4, 12}), tensor("m.scales", Dtype::kF16, {4, 96})}),
      4, 128, 512 * 96);
  const Claim gemv = claim_of(4, 128);
  expect_packing(
      measure({tensor("m.qweight", Dtype::kI32, {96, 64}), tensor("m.qzeros", Dtype::kI32, {96, 1}),
               tensor("m.scales", Dtype::kF16, {96, 8})},
              &gemv),
      4, 128, 512 * 96);
  expect_packing(measure({tensor("m.qweight", Dtype::kI16, {24, 512}),
                          tensor("m.scales", Dtype::kF16, {8, 96})},
                         &gemv),
                 4, 128, 512 * 96);
}

TEST(Packing, SolvesMlx) {
  expect_packing(
      measure({tensor("m.weight", Dtype::kU32, {8, 64}), tensor("m.scales", Dtype::kBF16, {8, 8}),
               tensor("m.biases", Dtype::kBF16, {8, 8})}),
      4, 64, 8 * 512);
  const Claim six = claim_of(6, 64);
  expect_packing(
      measure({tensor("m.weight", Dtype::kU32, {8, 96}), tensor("m.scales", Dtype::kBF16, {8, 8}),
               tensor("m.biases", Dtype::kBF16, {8, 8})},
              &six),
      6, 64, 8 * 512);
  expect_packing(
      measure({tensor("m.weight", Dtype::kU32, {8, 64}), tensor("m.scales", Dtype::kU8, {8, 16})}),
      4, 32, 8 * 512);
  expect_packing(
      measure({tensor("m.weight", Dtype::kU32, {8, 64}), tensor("m.scales", Dtype::kU8, {8, 32})}),
      4, 16, 8 * 512);
  expect_packing(
      measure({tensor("m.weight", Dtype::kU32, {8, 64}), tensor("m.scales", Dtype::kU8, {8, 8})}),
      8, 32, 8 * 256);
}

TEST(Packing, CountsTwoCodesAByte) {
  expect_packing(measure({tensor("m.weight_packed", Dtype::kU8, {8, 16}),
                          tensor("m.weight_scale", Dtype::kF8E4M3, {8, 2}),
                          tensor("m.weight_global_scale", Dtype::kF32, {1})}),
                 4, 16, 8 * 32);
  expect_packing(measure({tensor("m.weight", Dtype::kU8, {4, 32}),
                          tensor("m.weight_scale", Dtype::kF32, {8, 2})}),
                 4, 16, 8 * 32);
  expect_packing(measure({tensor("m.down_proj_blocks", Dtype::kU8, {2, 8, 4, 16}),
                          tensor("m.down_proj_scales", Dtype::kU8, {2, 8, 4})}),
                 4, 32, 2 * 8 * 128);
  expect_packing(measure({tensor("m.weight", Dtype::kU8, {512, 1}),
                          tensor("m.weight.absmax", Dtype::kF32, {16})}),
                 4, 64, 1024);
  expect_packing(measure({tensor("m.weight", Dtype::kBF16, {256, 1}),
                          tensor("m.weight.absmax", Dtype::kF32, {16})}),
                 4, 64, 1024);
  const Packing short_scales = measure({tensor("m.down_proj_blocks", Dtype::kU8, {2, 8, 4, 16}),
                                        tensor("m.down_proj_scales", Dtype::kU8, {2, 8, 3})});
  EXPECT_NE(short_scales.fault, "");
}

TEST(Packing, TakesStacksOfNvfp4InEitherOrder) {
  const auto stack = [](std::vector<std::uint64_t> scales) {
    return measure({tensor("m.weight", Dtype::kU8, {2, 32, 96}),
                    tensor("m.weight_scale", Dtype::kF8E4M3, std::move(scales)),
                    tensor("m.weight_scale_2", Dtype::kF32, {})});
  };
  expect_packing(stack({2, 32, 12}), 4, 16, 2 * 32 * 192);
  expect_packing(stack({2, 4, 96}), 4, 16, 2 * 64 * 96);
  EXPECT_NE(stack({2, 2, 96}).fault, "");
  EXPECT_NE(stack({4, 96}).fault, "");
}

TEST(Packing, CountsOneCodeAnElement) {
  expect_packing(measure({tensor("m.weight", Dtype::kF8E4M3, {256, 256}),
                          tensor("m.weight_scale_inv", Dtype::kF32, {2, 2})}),
                 8, 128, 256 * 256);
  expect_packing(measure({tensor("m.weight", Dtype::kI8, {8, 8}),
                          tensor("m.weight_scale", Dtype::kF32, {8, 1})}),
                 8, -1, 64);
  expect_packing(measure({tensor("m.weight", Dtype::kQ5_1, {8, 64})}), 5, 32, 512);
  expect_packing(measure({tensor("m.weight", Dtype::kIQ2_XXS, {8, 256})}), 2, 256, 2048);
  expect_packing(measure({tensor("m.trellis", Dtype::kI16, {2, 2, 48})}), 3, 0, 1024);
  expect_packing(
      measure({tensor("m.bitmask", Dtype::kU8, {8, 4}), tensor("m.compressed", Dtype::kBF16, {9})}),
      0, 0, 256);
}

TEST(Packing, TakesNoHarmFromAbsurdClaimsAndShapes) {
  const Claim absurd = claim_of(64, 1 << 30);
  expect_packing(measure(ct_packed(6144, 192, 48), &absurd), 4, 32, 6144ULL * 1536);
  measure({tensor("m.qweight", Dtype::kI32, {0, 0}), tensor("m.scales", Dtype::kF16, {0, 0})},
          &absurd);
  measure({tensor("m.weight", Dtype::kU32, {0, 0}), tensor("m.scales", Dtype::kU8, {0, 0})},
          &absurd);
  measure({tensor("m.weight_packed", Dtype::kI32, {}), tensor("m.weight_scale", Dtype::kF16, {})},
          &absurd);
  measure(
      {tensor("m.down_proj_blocks", Dtype::kU8, {}), tensor("m.down_proj_scales", Dtype::kU8, {})});
  const Packing gptq = measure(
      {tensor("m.qweight", Dtype::kI32, {4, 8, 8}), tensor("m.scales", Dtype::kF16, {8})}, &absurd);
  EXPECT_LE(gptq.bits, 8U);
}

}  // namespace
}  // namespace gridscope::model
