#pragma once

// Which scheme stores a module, by the tensors that are there, their types and their shapes.

#include <vector>

#include "gridscope/model/module_view.hpp"
#include "gridscope/model/modules.hpp"

namespace gridscope::model {

// Decides in the order of specificity: the suffix that only one format uses goes first. A module
// with companions missing still gets the scheme that the others point to.
[[nodiscard]] Scheme detect_scheme(const ModuleView& module);

// The suffix of the tensor that tells how many weights a module stored in that way has.
[[nodiscard]] Suffix weight_suffix(Scheme scheme, const ModuleView& module);

// What a tensor of that suffix is in a module stored in that way.
[[nodiscard]] Storage storage_of_suffix(Scheme scheme, Suffix suffix);

// Whether a tensor of that suffix is part of a module stored in that way. Suffixes that ordinary
// parameters bear too ("scale", "shape") belong only to schemes that know them.
[[nodiscard]] bool belongs_to(Scheme scheme, Suffix suffix);

// Companions without which such a module cannot be decoded and that are not there.
[[nodiscard]] std::vector<Suffix> missing_companions(Scheme scheme, const ModuleView& module);

}  // namespace gridscope::model
