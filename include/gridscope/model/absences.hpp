#pragma once

// Good reasons for a weight of one checkpoint not to be in another one of the same model.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/model/checkpoint.hpp"
#include "gridscope/model/weights.hpp"

namespace gridscope::model {

// What the configurations of both sides say about weights that a model can do without. The source
// is asked first.
struct SharingFacts {
  bool tied_head = false;
  bool values_are_keys = false;                       // in layers of full attention
  std::vector<bool> full_attention = {};              // by layer; all when empty
  std::optional<std::uint64_t> first_kv_shared = {};  // layers from here on reuse keys and values
};
[[nodiscard]] SharingFacts sharing_facts(const Checkpoint& source, const Checkpoint& build);

// Whether the values of that layer are its keys. `canonical` names its v_proj.
[[nodiscard]] bool values_are_keys(const SharingFacts& facts, std::string_view canonical);

// One of the two checkpoints, the one that does not have a weight.
class AbsenceRules {
 public:
  AbsenceRules(const Checkpoint& checkpoint, std::span<const Weight> weights, SharingFacts facts);

  // Why a weight of the other side is not here; empty when there is no good reason. Its name is
  // that of the unit, which may be a part of it.
  [[nodiscard]] std::optional<std::string> explain(const Weight& weight,
                                                   std::string_view canonical) const;

 private:
  SharingFacts facts_;
  std::set<Part> parts_;
  std::vector<std::pair<std::string, std::string>>
      aliases_;  // canonical, and the name that is kept
};

}  // namespace gridscope::model
