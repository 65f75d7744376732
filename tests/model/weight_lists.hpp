#pragma once

// Weights and checkpoints for the tests of matching, without files: only names, shapes and what the
// configuration says.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/model/checkpoint.hpp"
#include "gridscope/model/weights.hpp"
#include "support/checkpoints.hpp"
#include "support/matchers.hpp"
#include "support/memory_repository.hpp"

namespace gridscope::test {

inline model::Checkpoint load_from(const MemoryRepository& repository) {
  NullObserver observer;
  auto checkpoint = model::load_checkpoint(repository, observer);
  EXPECT_THAT(checkpoint, IsOk());
  return checkpoint ? *std::move(checkpoint) : model::Checkpoint();
}

// A checkpoint of one safetensors file.
inline model::Checkpoint checkpoint_of(const SafetensorsBuilder& tensors,
                                       std::string_view config = "{}") {
  MemoryRepository repository;
  repository.add("config.json", config).add("model.safetensors", tensors.build());
  return load_from(repository);
}

inline model::Checkpoint checkpoint_of(const GgufBuilder& tensors) {
  MemoryRepository repository;
  repository.add("model.gguf", tensors.build());
  return load_from(repository);
}

inline const model::Weight* find_weight(std::span<const model::Weight> weights,
                                        std::string_view name) {
  const auto found = std::ranges::find(weights, name, &model::Weight::name);
  return found == weights.end() ? nullptr : &*found;
}

inline std::vector<std::string> names_of(std::span<const model::Weight> weights) {
  std::vector<std::string> names;
  for (const model::Weight& weight : weights) names.push_back(weight.name);
  return names;
}

inline std::vector<std::string> canonical_names_of(std::span<const model::Weight> weights) {
  std::vector<std::string> names;
  for (const model::Weight& weight : weights) names.push_back(weight.canonical);
  return names;
}

}  // namespace gridscope::test
