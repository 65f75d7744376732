#pragma once

// What somebody may have meant by a word that is not known.

#include <span>
#include <string>
#include <string_view>

namespace gridscope::cli {

// The candidate with the fewest edits from `word`, if that is at most a third of its length (and
// at most 3); empty otherwise. The first wins among equals.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace gridscope::cli
