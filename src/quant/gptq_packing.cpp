#include "gptq_packing.hpp"

#include <algorithm>
#include <array>

#include "gridscope/core/checked.hpp"
#include "gridscope/quant/bitstream.hpp"

// A plane is a bit stream of its own: 32 codes of w bits in w words, the lowest bits first.

namespace gridscope::quant {
namespace {

struct Plane {
  unsigned width = 0;
  unsigned shift = 0;  // of its lowest bit within the code
};

// The planes of a width: a wide one for the low bits, what is left in halves.
std::array<Plane, 3> planes_of(std::uint32_t bits) {
  switch (bits) {
    case 3:
      return {Plane{2, 0}, {1, 2}, {}};
    case 5:
      return {Plane{4, 0}, {1, 4}, {}};
    case 6:
      return {Plane{4, 0}, {2, 4}, {}};
    case 7:
      return {Plane{4, 0}, {2, 4}, {1, 6}};
    default:
      return {Plane{bits, 0}, {}, {}};
  }
}

using Block = std::array<std::uint8_t, kGptqBlock>;

constexpr std::uint64_t kUsualBits = 32;

}  // namespace

std::uint64_t word_bits_of(Dtype words) {
  return dtype_info(words).block_bits;
}

bool fits_words(std::uint32_t bits, Dtype words) {
  const std::uint64_t word_bits = word_bits_of(words);
  return word_bits == kUsualBits || word_bits % bits == 0;
}

std::uint64_t words_for(std::uint64_t codes, std::uint32_t bits, Dtype words) {
  return ceil_div(codes * bits, word_bits_of(words));
}

bool is_planar(const WeightSpec& spec, std::uint32_t bits) {
  return spec.gptq_packing == WeightSpec::GptqPacking::kPlanar || (bits >= 5 && bits <= 7);
}

void unpack_planar(std::span<const std::byte> stream, std::uint32_t bits,
                   std::span<std::uint8_t> out) {
  for (std::size_t first = 0; first < out.size(); first += kGptqBlock) {
    Block codes = {};
    std::size_t byte = first * bits / 8;
    for (const Plane plane : planes_of(bits)) {
      if (plane.width == 0) break;
      Block parts = {};
      unpack_bits(stream.subspan(byte), plane.width, 0, parts);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<std::uint8_t>(codes[i] | (parts[i] << plane.shift));
      }
      byte += kGptqBlock * plane.width / 8;
    }
    std::copy_n(codes.begin(), std::min<std::size_t>(kGptqBlock, out.size() - first),
                out.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

void pack_planar(std::span<const std::uint8_t> codes, std::uint32_t bits,
                 std::span<std::byte> stream) {
  for (std::size_t first = 0; first < codes.size(); first += kGptqBlock) {
    std::size_t byte = first * bits / 8;
    for (const Plane plane : planes_of(bits)) {
      if (plane.width == 0) break;
      Block parts = {};
      std::ranges::transform(
          codes.subspan(first, kGptqBlock), parts.begin(), [plane](std::uint8_t code) {
            const unsigned mask = (1U << plane.width) - 1;
            return static_cast<std::uint8_t>((static_cast<unsigned>(code) >> plane.shift) & mask);
          });
      const std::size_t bytes = kGptqBlock * plane.width / 8;
      pack_bits(parts, plane.width, stream.subspan(byte, bytes));
      byte += bytes;
    }
  }
}

}  // namespace gridscope::quant
