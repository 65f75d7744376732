// The fused comparison against the reference, on every CPU target: the same counts and the same
// bits of every sum.

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <bit>
#include <random>

#include "gridscope/quant/cpu_target.hpp"
#include "quant/int4_pair.hpp"
#include "quant/kernels/reference_sums.hpp"
#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using test::Build;
using test::Int4Pair;
using test::is_same_as_reference;
using test::reference_of;
using test::same;

class CompareInt4 : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_THAT(force_cpu_target(GetParam()), test::IsOk()); }
  void TearDown() override { ASSERT_THAT(force_cpu_target(""), test::IsOk()); }
};

TEST_P(CompareInt4, IsTheReferenceOnBuildsOfAGrid) {
  unsigned seed = 1;
  for (const std::uint64_t group_size : {16U, 32U, 48U, 64U, 96U, 128U, 256U, 768U}) {
    for (const Build build : {Build::kRepack, Build::kStretched, Build::kRequantized}) {
      for (const Dtype dtype : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
        for (const bool zero_points : {false, true}) {
          const auto pair = test::make_pair({.rows = 3,
                                             .columns = 768,
                                             .group_size = group_size,
                                             .build = build,
                                             .scale_dtype = dtype,
                                             .zero_points = zero_points},
                                            ++seed);
          ASSERT_TRUE(is_same_as_reference(pair))
              << group_size << " " << dtype_name(dtype) << " " << zero_points;
        }
      }
    }
  }
}

TEST_P(CompareInt4, DoesEveryNumberOfGroups) {
  for (std::uint64_t groups = 1; groups <= 13; ++groups) {
    const auto pair = test::make_pair({.rows = 3, .columns = groups * 32}, 7);
    ASSERT_TRUE(is_same_as_reference(pair, groups % 5)) << groups;
  }
}

TEST_P(CompareInt4, TakesSourceBytesAtAnyAddress) {
  const auto pair = test::make_pair({}, 3);
  auto bytes = pair.source_bytes();
  bytes.insert(bytes.begin(), std::byte{0});
  const ErrorSums fused = compare_int4_bf16(
      pair.int4_rows(), {.dtype = Dtype::kBF16, .bytes = std::span(bytes).subspan(1)});
  EXPECT_TRUE(same(fused, reference_of(pair)));
}

TEST_P(CompareInt4, IsTheReferenceOnPairsThatHaveNothingInCommon) {
  std::mt19937 random(11);
  auto pair = test::make_pair({.rows = 3, .columns = 512}, 2);
  const auto other = test::gaussian(random, pair.source.size(), 0.02);
  for (std::size_t i = 0; i < other.size(); ++i) {
    pair.source[i] = to_bf16(static_cast<double>(other[i]));
  }
  EXPECT_TRUE(is_same_as_reference(pair));
  for (std::uint8_t& code : pair.codes) code = static_cast<std::uint8_t>(random() & 0xfU);
  EXPECT_TRUE(is_same_as_reference(pair));
}

// The largest sums that there are, and errors of 0 where a unit is large.
TEST_P(CompareInt4, IsTheReferenceAtTheEndsOfItsRange) {
  auto pair = test::make_pair({.rows = 2, .columns = 256, .scale_dtype = Dtype::kF16}, 6);
  for (const int code : {0, 15}) {
    for (const float scale : {2047.0F / 1024, 255.0F / 128, 0x1.fep+96F, -0x1.fep+96F}) {
      for (std::size_t i = 0; i < pair.codes.size(); ++i) {
        pair.codes[i] = static_cast<std::uint8_t>(code);
        pair.scales[i / 32] = scale;
        pair.source[i] = to_bf16((code - 8) * static_cast<double>(scale));
      }
      EXPECT_TRUE(is_same_as_reference(pair)) << code << " " << scale;
      for (std::uint16_t& weight : pair.source) weight = static_cast<std::uint16_t>(weight - 1);
      EXPECT_TRUE(is_same_as_reference(pair)) << code << " " << scale;
    }
  }
}

// One strange weight or scale in otherwise usual groups, each in its turn.
TEST_P(CompareInt4, IsTheReferenceWithOneStrangeNumber) {
  const auto usual = test::make_pair({.rows = 2, .columns = 256}, 4);
  for (const unsigned strange : {0x0000U, 0x8000U, 0x0001U, 0x807fU, 0x0080U, 0x7f7fU, 0xff7fU,
                                 0x7f80U, 0xff80U, 0x7fc0U, 0xffc1U, 0x7f81U, 0x3f80U, 0xb580U}) {
    auto pair = usual;
    pair.source[5 * 32 + 17] = static_cast<std::uint16_t>(strange);
    ASSERT_TRUE(is_same_as_reference(pair)) << "weight " << strange;
    pair = usual;
    pair.scales[5] = static_cast<float>(bf16_value(static_cast<std::uint16_t>(strange)));
    ASSERT_TRUE(is_same_as_reference(pair)) << "scale " << strange;
    for (std::size_t i = 0; i < 32; ++i) pair.source[5 * 32 + i] = 0;
    ASSERT_TRUE(is_same_as_reference(pair)) << "scale " << strange << " of a dead group";
  }
}

// Rounding to BF16 is halfway for every odd product of a scale with nine significant bits.
TEST_P(CompareInt4, RoundsHalfToEven) {
  auto pair = test::make_pair({.rows = 1, .columns = 128, .scale_dtype = Dtype::kF16}, 5);
  for (unsigned significand = 256; significand < 512; ++significand) {
    for (std::size_t g = 0; g < 4; ++g) {
      pair.scales[g] = std::ldexp(static_cast<float>(significand), -14);
      for (std::size_t i = 0; i < 32; ++i) {
        pair.codes[g * 32 + i] = static_cast<std::uint8_t>(i % 16);
        const double value = (static_cast<int>(i % 16) - 8) * static_cast<double>(pair.scales[g]);
        pair.source[g * 32 + i] = static_cast<std::uint16_t>(to_bf16(value) + (i == g ? 1 : 0));
      }
    }
    ASSERT_TRUE(is_same_as_reference(pair)) << significand;
  }
}

// Equal errors in several places, rows and blocks: the first one is the worst.
TEST_P(CompareInt4, NamesTheFirstOfTheWorst) {
  auto pair = test::make_pair({.rows = 3, .columns = 256, .build = Build::kRepack}, 6);
  std::ranges::fill(pair.scales, 0.125F);
  std::ranges::fill(pair.codes, std::uint8_t{9});
  std::ranges::fill(pair.source, std::uint16_t{0x3e00});
  for (const std::size_t at : {700U, 420U, 300U, 290U}) {
    pair.source[at] = 0x3e80;
    const auto bytes = pair.source_bytes();
    const ErrorSums fused =
        compare_int4_bf16(pair.int4_rows(), {.dtype = Dtype::kBF16, .bytes = bytes});
    EXPECT_EQ(fused.worst, (WorstError{.error = 0.125, .row = 5 + at / 256, .column = at % 256}));
    ASSERT_TRUE(is_same_as_reference(pair));
  }
}

// A step of 0.125 and an error of exactly half of it, and of the next BF16 number beyond.
TEST_P(CompareInt4, CountsMovedBeyondHalfAStep) {
  Int4Pair pair = test::make_pair({.rows = 1, .columns = 128}, 6);
  std::ranges::fill(pair.scales, 0.125F);
  std::ranges::fill(pair.codes, std::uint8_t{9});
  std::ranges::fill(pair.source, std::uint16_t{0x3e00});
  pair.source[3] = to_bf16(0.0625);
  pair.source[4] = to_bf16(0.1875);
  EXPECT_EQ(reference_of(pair).moved, 0);
  ASSERT_TRUE(is_same_as_reference(pair));
  pair.source[3] = to_bf16(0.0615);
  pair.source[70] = to_bf16(0.189);
  EXPECT_EQ(reference_of(pair).moved, 2);
  ASSERT_TRUE(is_same_as_reference(pair));
}

std::uint16_t any_bf16() {
  static constexpr std::array<std::uint16_t, 12> kStrange = {
      0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81};
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return kStrange.at(*rc::gen::inRange<std::size_t>(0, kStrange.size()));
    case 1:
      return *rc::gen::arbitrary<std::uint16_t>();
    default:  // around 0.05, as weights are
      return static_cast<std::uint16_t>(*rc::gen::inRange(0x3a00, 0x3e00) |
                                        (*rc::gen::inRange(0, 2) << 15));
  }
}

float any_scale() {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>());
    case 1:
      return static_cast<float>(f16_value(*rc::gen::arbitrary<std::uint16_t>()));
    default:
      return std::bit_cast<float>(static_cast<std::uint32_t>(any_bf16()) << 16U);
  }
}

// Usual rows in which any weight, code, scale and zero point may be replaced.
RC_GTEST_PROP(CompareInt4Property, IsTheReferenceOnAnything, ()) {
  const auto group_size = *rc::gen::element<std::uint64_t>(16, 32, 32, 32, 64, 128, 256);
  const std::uint64_t columns = group_size * 2 * *rc::gen::inRange<std::uint64_t>(1, 6);
  const bool zero_points = *rc::gen::arbitrary<bool>();
  Int4Pair pair = test::make_pair(
      {.rows = 2,
       .columns = columns,
       .group_size = group_size,
       .build = *rc::gen::element(Build::kRepack, Build::kStretched, Build::kRequantized)},
      *rc::gen::inRange(0U, 1000U));
  if (zero_points) pair.zeros.assign(pair.scales.size(), 0);
  for (int changes = *rc::gen::inRange(0, 12); changes > 0; --changes) {
    pair.source[*rc::gen::inRange<std::size_t>(0, pair.source.size())] = any_bf16();
    pair.codes[*rc::gen::inRange<std::size_t>(0, pair.codes.size())] =
        static_cast<std::uint8_t>(*rc::gen::inRange(0, 16));
    const auto group = *rc::gen::inRange<std::size_t>(0, pair.scales.size());
    if (*rc::gen::arbitrary<bool>()) pair.scales[group] = any_scale();
    if (zero_points) pair.zeros[group] = static_cast<std::int8_t>(*rc::gen::inRange(-8, 8));
  }
  for (const std::string& target : cpu_targets()) {
    RC_ASSERT(force_cpu_target(target).has_value());
    RC_ASSERT(is_same_as_reference(pair));
  }
  RC_ASSERT(force_cpu_target("").has_value());
}

INSTANTIATE_TEST_SUITE_P(Targets, CompareInt4, ::testing::ValuesIn(cpu_targets()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace gridscope::quant
