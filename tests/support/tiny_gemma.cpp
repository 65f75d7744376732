#include "support/tiny_gemma.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "gridscope/quant/codec.hpp"

namespace gridscope::test {
namespace {

using quant::LeveledWeight;

constexpr std::uint64_t kHidden = 64;
constexpr std::uint64_t kInner = 96;
constexpr std::uint64_t kVocabulary = 48;
constexpr std::uint64_t kPerLayer = 32;
constexpr std::uint64_t kExperts = 4;
constexpr std::uint64_t kExpertInner = 32;
constexpr std::uint64_t kHeads = 2;
constexpr std::uint64_t kLayers = 5;
constexpr std::uint64_t kGroup = 32;
constexpr std::uint64_t kFirstShared = 3;  // uses the keys and values of an earlier layer
constexpr std::uint64_t kExpertLayer = 2;

constexpr bool has_full_attention(std::uint64_t layer) {
  return layer == 1 || layer == 4;
}

// Numbers that look random and are the same on every machine (splitmix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL) {}

  std::uint64_t below(std::uint64_t count) { return next() % count; }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11U) * 0x1p-53;
  }

 private:
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31U);
  }

  std::uint64_t state_;
};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : dice_(seed) {}

  TinyGemma run() {
    table("embed_tokens.weight", {kVocabulary, kHidden});
    table("embed_tokens_per_layer.weight", {kVocabulary, kLayers * kPerLayer});
    table("per_layer_projection_norm.weight", {kPerLayer});
    linear("per_layer_model_projection", kLayers * kPerLayer, kHidden);
    for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
      const std::string prefix = fmt::format("layers.{}.", layer);
      attention(prefix + "self_attn.", layer);
      dense(prefix);
      if (layer == kExpertLayer) experts(prefix);
    }
    table("norm.weight", {kHidden});
    return std::move(model_);
  }

 private:
  void attention(const std::string& prefix, std::uint64_t layer) {
    const bool full = has_full_attention(layer);
    const std::uint64_t head = full ? kHidden : kHidden / kHeads;
    linear(prefix + "q_proj", kHeads * head, kHidden);
    linear(prefix + "k_proj", head, kHidden);
    if (!full) linear(prefix + "v_proj", head, kHidden);
    linear(prefix + "o_proj", kHidden, kHeads * head);
    table(prefix + "q_norm.weight", {head});
    table(prefix + "k_norm.weight", {head});
  }

  void dense(const std::string& prefix) {
    linear(prefix + "mlp.gate_proj", kInner, kHidden);
    linear(prefix + "mlp.up_proj", kInner, kHidden);
    linear(prefix + "mlp.down_proj", kHidden, kInner);
    linear(prefix + "per_layer_input_gate", kPerLayer, kHidden);
    linear(prefix + "per_layer_projection", kHidden, kPerLayer);
    for (const char* norm :
         {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
          "post_feedforward_layernorm", "post_per_layer_input_norm"}) {
      table(prefix + norm + ".weight", {kHidden});
    }
    table(prefix + "layer_scalar", {1});
  }

  void experts(const std::string& prefix) {
    for (std::uint64_t expert = 0; expert < kExperts; ++expert) {
      const std::string name = fmt::format("{}experts.{}.", prefix, expert);
      linear(name + "gate_proj", kExpertInner, kHidden);
      linear(name + "up_proj", kExpertInner, kHidden);
      linear(name + "down_proj", kHidden, kExpertInner);
    }
    table(prefix + "router.proj.weight", {kExperts, kHidden});
    table(prefix + "router.scale", {kHidden});
    table(prefix + "router.per_expert_scale", {kExperts});
    for (const char* norm : {"pre_feedforward_layernorm_2", "post_feedforward_layernorm_1",
                             "post_feedforward_layernorm_2"}) {
      table(prefix + norm + ".weight", {kHidden});
    }
  }

  // Scales have eight significant bits and an exponent that F16 has too.
  void linear(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    LeveledWeight weight{.rows = rows, .columns = columns, .group_size = kGroup};
    for (std::uint64_t i = 0; i < rows * columns; ++i) {
      weight.levels.push_back(static_cast<std::int16_t>(static_cast<int>(dice_.below(16)) - 8));
    }
    for (std::uint64_t i = 0; i < rows * columns / kGroup; ++i) {
      weight.scales.push_back(quant::rounded_to(Dtype::kBF16, dice_.between(0x1p-8, 0x1p-5)));
    }
    model_.linears.push_back({.name = name, .weight = std::move(weight)});
  }

  void table(const std::string& name, const Shape& shape) {
    TinyTable table{.name = name, .shape = shape, .values = {}};
    const std::uint64_t count = shape.front() * (shape.size() > 1 ? shape.back() : 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      table.values.push_back(quant::rounded_to(Dtype::kBF16, dice_.between(0.5, 2.0)));
    }
    model_.tables.push_back(std::move(table));
  }

  Dice dice_;
  TinyGemma model_;
};

template <typename List>
auto& named(List& list, std::string_view name) {
  const auto found =
      std::ranges::find_if(list, [&](const auto& entry) { return entry.name == name; });
  if (found == list.end()) throw std::logic_error(fmt::format("the tiny model has no {}", name));
  return *found;
}

// ---- smoothing ----------------------------------------------------------------------------------

// The weights that read what a norm puts out: all whose name starts and ends like that.
struct Readers {
  std::string_view norm;
  std::string_view start;
  std::vector<std::string_view> ends;
};

// Sixteen levels between the smallest and the largest of the group, zero among them.
void round_group(std::span<const double> values, std::uint64_t group, LeveledWeight& weight) {
  const auto [smallest, largest] = std::ranges::minmax(values);
  const double low = std::min(smallest, 0.0);
  const double high = std::max(largest, 0.0);
  const double scale = quant::rounded_to(Dtype::kF16, (high - low) / 15.0);
  const double zero = std::clamp(std::nearbyint(-low / scale), 0.0, 15.0);
  weight.scales[group] = scale;
  weight.zeros[group] = static_cast<std::int16_t>(zero - 8.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double code = std::clamp(std::nearbyint(values[i] / scale) + zero, 0.0, 15.0);
    weight.levels[group * kGroup + i] = static_cast<std::int16_t>(code - 8.0);
  }
}

void round_anew(const std::vector<double>& values, LeveledWeight& weight) {
  weight.zeros.resize(weight.scales.size());
  for (std::uint64_t group = 0; group < weight.scales.size(); ++group) {
    round_group(std::span(values).subspan(group * kGroup, kGroup), group, weight);
  }
}

// The factor of each column of a weight; empty: none.
using Factors = std::vector<double>;

bool reads(const Readers& readers, const std::string& prefix, std::string_view name) {
  return name.starts_with(prefix + std::string(readers.start)) &&
         std::ranges::any_of(readers.ends, [&](auto end) { return name.ends_with(end); });
}

}  // namespace

LeveledWeight& TinyGemma::linear(std::string_view name) {
  return named(linears, name).weight;
}

const LeveledWeight& TinyGemma::linear(std::string_view name) const {
  return named(linears, name).weight;
}

TinyTable& TinyGemma::table(std::string_view name) {
  return named(tables, name);
}

TinyGemma make_tiny_gemma(std::uint64_t seed) {
  return Maker(seed).run();
}

std::vector<double> exact_values(const LeveledWeight& weight) {
  std::vector<double> values(weight.levels.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t group = i / weight.group_size;
    const int zero = weight.zeros.empty() ? 0 : weight.zeros[group];
    values[i] = (weight.levels[i] - zero) * weight.scales[group];
  }
  return values;
}

TinyGemma smoothed(const TinyGemma& model) {
  static const std::array<Readers, 3> kReaders = {
      Readers{"input_layernorm.weight", "self_attn.", {"q_proj", "k_proj", "v_proj"}},
      Readers{"pre_feedforward_layernorm.weight", "mlp.", {"gate_proj", "up_proj"}},
      Readers{"pre_feedforward_layernorm_2.weight", "experts.", {"gate_proj", "up_proj"}}};
  TinyGemma result = model;
  std::vector<std::vector<double>> values;
  for (const TinyLinear& linear : model.linears) values.push_back(exact_values(linear.weight));
  Dice dice(7);
  for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = fmt::format("layers.{}.", layer);
    for (const Readers& readers : kReaders) {
      if (readers.start == "experts." && layer != kExpertLayer) continue;
      Factors factors;
      for (double& value : result.table(prefix + std::string(readers.norm)).values) {
        factors.push_back(dice.between(0.75, 1.5));
        value = quant::rounded_to(Dtype::kBF16, value / factors.back());
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!reads(readers, prefix, model.linears[i].name)) continue;
        for (std::size_t k = 0; k < values[i].size(); ++k) values[i][k] *= factors[k % kHidden];
      }
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) round_anew(values[i], result.linears[i].weight);
  return result;
}

bool is_shared_away(std::string_view name) {
  for (std::uint64_t layer = kFirstShared; layer < kLayers; ++layer) {
    const std::string attention = fmt::format("layers.{}.self_attn.", layer);
    for (const char* module : {"k_proj", "v_proj", "k_norm"}) {
      if (name.starts_with(attention + module)) return true;
    }
  }
  return false;
}

}  // namespace gridscope::test
