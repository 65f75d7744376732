#include "gridscope/quant/weight_spec.hpp"

namespace gridscope::quant {
namespace {

struct CompanionInfo {
  std::string_view name;
  bool whole;
};

constexpr std::array<CompanionInfo, kCompanionCount> kCompanions = {{
    {"codes", false},
    {"scale", false},
    {"zero point", false},
    {"offset", false},
    {"group index", true},
    {"shape", true},
    {"global scale", true},
    {"pre-quantization scale", true},
    {"quantization map", true},
    {"quantization state", true},
    {"nested scale", true},
    {"nested quantization map", true},
    {"weight format", true},
    {"bitmask", false},
    {"row offsets", true},
}};

}  // namespace

std::string_view companion_name(Companion companion) {
  return kCompanions.at(static_cast<std::size_t>(companion)).name;
}

bool is_read_whole(Companion companion) {
  return kCompanions.at(static_cast<std::size_t>(companion)).whole;
}

}  // namespace gridscope::quant
