#pragma once

// How a set of tensors is stored, in a few words: "BF16", "int4 g32, BF16 scales + BF16".

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gridscope/core/dtype.hpp"
#include "gridscope/model/modules.hpp"

namespace gridscope::analysis {

// One way of storing a weight. A plain tensor has a dtype alone.
struct StorageKind {
  model::Scheme scheme = model::Scheme::kPlain;
  std::uint32_t bits = 0;
  std::int64_t group_size = 0;  // -1: a whole row
  Dtype dtype = Dtype::kF32;    // of the weight as it is stored
  std::optional<Dtype> scales = {};

  friend auto operator<=>(const StorageKind&, const StorageKind&) = default;
};

// "int4 g32, BF16 scales", "nvfp4 g16, F8_E4M3 scales", "Q4_0", "BF16".
[[nodiscard]] std::string describe(const StorageKind& kind);

// Bytes per way of storing. A plain value: the order of adding does not matter.
using StorageMix = std::map<StorageKind, std::uint64_t>;

// The kinds by bytes, largest first, joined by " + "; beyond three, how many more there are.
[[nodiscard]] std::string describe(const StorageMix& mix);

// Whether weights of that scheme are codes with companions, so that their own dtype says little.
[[nodiscard]] bool is_coded(model::Scheme scheme);

}  // namespace gridscope::analysis
