#pragma once

// What matching two checkpoints says, in a form that is easy to compare.

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridscope/model/weight_matching.hpp"
#include "model/weight_lists.hpp"

namespace gridscope::test {

inline model::Matching match(const model::Checkpoint& source, const model::Checkpoint& build) {
  const auto source_weights = model::list_weights(source);
  const auto build_weights = model::list_weights(build);
  auto matching = model::match_weights(source, source_weights, build, build_weights);
  EXPECT_THAT(matching, IsOk());
  return matching ? *std::move(matching) : model::Matching();
}

inline std::vector<std::string> codes(const model::Matching& matching) {
  std::vector<std::string> all;
  for (const Finding& finding : matching.findings) all.push_back(finding.code);
  return all;
}

inline std::vector<std::string> names(std::span<const model::WeightPair> pairs) {
  std::vector<std::string> all;
  for (const model::WeightPair& pair : pairs) all.push_back(pair.name + " = " + pair.source_name);
  return all;
}

inline const model::WeightPair* find_pair(std::span<const model::WeightPair> pairs,
                                          std::string_view name) {
  const auto found = std::ranges::find(pairs, name, &model::WeightPair::name);
  return found == pairs.end() ? nullptr : &*found;
}

// Tensors of BF16.
inline SafetensorsBuilder plain(std::initializer_list<std::pair<const char*, Shape>> tensors) {
  SafetensorsBuilder builder;
  for (const auto& [name, shape] : tensors) builder.tensor(name, Dtype::kBF16, shape);
  return builder;
}

}  // namespace gridscope::test
