#pragma once

// Which norm's output a projection reads: that is where a factor for each of its columns can be
// folded in. Source: the forward passes of transformers' model classes.

#include <string>
#include <string_view>
#include <vector>

namespace gridscope::model {

// Canonical names, the first that the model has being the one; empty for projections that read no
// norm's output, and for whatever is no projection.
[[nodiscard]] std::vector<std::string> norms_before(std::string_view canonical);

}  // namespace gridscope::model
