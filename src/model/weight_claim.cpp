#include "gridscope/model/weight_claim.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace gridscope::model {
namespace {

using quant::Scheme;
using quant::WeightSpec;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Major and minor of "0.17.1"; empty when the text does not start like that.
std::optional<std::pair<unsigned, unsigned>> parse_version(std::string_view text) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return std::nullopt;
  return std::pair(major, minor);
}

// From version 0.17 on codes of 3, 5, 6 and 7 bits cross the borders of words.
WeightSpec::CtPacking ct_packing(std::string_view version) {
  const auto number = parse_version(version);
  if (!number) return WeightSpec::CtPacking::kUnknown;
  return *number >= std::pair(0U, 17U) ? WeightSpec::CtPacking::kDense
                                       : WeightSpec::CtPacking::kWholeCodes;
}

// Codes of 5 to 7 bits are always stored in planes. Planar files and those of version 2 hold zero
// points as they are; AutoRound's GPTQ packing is that of version 1.
void apply_gptq(WeightSpec& spec) {
  const bool planar = spec.format.starts_with("gptq_p") || (spec.bits >= 5 && spec.bits <= 7);
  if (planar) spec.gptq_packing = WeightSpec::GptqPacking::kPlanar;
  if (planar || contains(spec.format, "v2")) {
    spec.gptq_zeros = WeightSpec::GptqZeros::kAsStored;
  }
}

}  // namespace

void apply_claim(const QuantizationConfig& config, const QuantizationConfig::Scheme* scheme,
                 WeightSpec& spec) {
  spec.format = config.format;
  if (scheme != nullptr) {
    spec.bits = scheme->bits.value_or(0);
    spec.group_size = scheme->group_size.value_or(0);
    spec.block = scheme->block;
    spec.symmetric = scheme->symmetric;
    spec.act_order = scheme->act_order;
    if (!scheme->format.empty()) spec.format = scheme->format;
    if (scheme->divides_by_scale) spec.scale_use = WeightSpec::ScaleUse::kDivide;
  }
  if (spec.scheme == Scheme::kCtPackQuantized) spec.ct_packing = ct_packing(config.version);
  if (spec.scheme == Scheme::kGptq) apply_gptq(spec);
}

}  // namespace gridscope::model
