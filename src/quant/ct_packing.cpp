#include "ct_packing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gridscope/core/checked.hpp"
#include "gridscope/quant/bitstream.hpp"
#include "spec_checks.hpp"

namespace gridscope::quant {
namespace {

constexpr std::uint64_t kWordBits = 32;
constexpr std::uint64_t kWordBytes = 4;

bool looks_the_same(std::uint32_t bits) {
  return kWordBits % bits == 0;
}

tl::unexpected<Error> misfit(const WeightSpec& spec, std::uint32_t bits,
                             std::span<const CtWords> runs) {
  for (const CtWords& run : runs) {
    const std::uint64_t dense = ct_words(CtPacking::kDense, bits, run.codes);
    const std::uint64_t whole = ct_words(CtPacking::kWholeCodes, bits, run.codes);
    if (run.words == dense || run.words == whole) continue;
    return corrupt(spec,
                   fmt::format("its {} has {} words for {} of {} bits, expected {}",
                               companion_name(run.companion), run.words, run.codes, bits, dense));
  }
  return corrupt(spec, "its codes and its zero points are not packed in the same way");
}

}  // namespace

std::uint64_t ct_words(CtPacking packing, std::uint32_t bits, std::uint64_t codes) {
  return packing == CtPacking::kDense ? ceil_div(codes * bits, kWordBits)
                                      : ceil_div(codes, kWordBits / bits);
}

std::uint64_t ct_bit(CtPacking packing, std::uint32_t bits, std::uint64_t index) {
  if (packing == CtPacking::kDense) return index * bits;
  const std::uint64_t codes = kWordBits / bits;
  return index / codes * kWordBits + index % codes * bits;
}

void unpack_ct(CtPacking packing, std::uint32_t bits, std::span<const std::byte> row,
               std::span<std::uint8_t> out) {
  const std::uint64_t run =
      packing == CtPacking::kDense ? std::max<std::uint64_t>(out.size(), 1) : kWordBits / bits;
  for (std::uint64_t first = 0, word = 0; first < out.size(); first += run, ++word) {
    const std::uint64_t count = std::min(run, out.size() - first);
    unpack_bits(row.subspan(word * kWordBytes), bits, 0, out.subspan(first, count));
  }
}

void pack_ct(CtPacking packing, std::uint32_t bits, std::span<const std::uint8_t> codes,
             std::span<std::byte> row) {
  if (packing == CtPacking::kDense) return pack_bits(codes, bits, row);
  const std::uint64_t run = kWordBits / bits;
  for (std::uint64_t first = 0, word = 0; first < codes.size(); first += run, ++word) {
    const std::uint64_t count = std::min(run, codes.size() - first);
    pack_bits(codes.subspan(first, count), bits, row.subspan(word * kWordBytes, kWordBytes));
  }
}

Result<CtPacking> solve_ct_packing(const WeightSpec& spec, std::uint32_t bits,
                                   std::span<const CtWords> runs) {
  const auto fits = [&](CtPacking packing) {
    return std::ranges::all_of(
        runs, [&](const CtWords& run) { return ct_words(packing, bits, run.codes) == run.words; });
  };
  const bool dense = fits(CtPacking::kDense);
  const bool whole = fits(CtPacking::kWholeCodes);
  if (dense && (!whole || looks_the_same(bits))) return CtPacking::kDense;
  if (whole && !dense) return CtPacking::kWholeCodes;
  if (!dense) return misfit(spec, bits, runs);
  if (spec.ct_packing != CtPacking::kUnknown) return spec.ct_packing;
  return corrupt(spec,
                 fmt::format("{} words for {} codes of {} bits fit the packing before and since "
                             "compressed-tensors 0.17, and its version is not known",
                             runs.front().words, runs.front().codes, bits),
                 "write the version of compressed-tensors into quantization_config");
}

}  // namespace gridscope::quant
