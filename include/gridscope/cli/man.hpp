#pragma once

#include <string>
#include <string_view>

namespace gridscope::cli {

// gridscope(1) in roff with the man macros.
[[nodiscard]] std::string man_page();

// `text` so that roff shows it as it is.
[[nodiscard]] std::string roff_escape(std::string_view text);

}  // namespace gridscope::cli
