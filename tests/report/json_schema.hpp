#pragma once

// Holds a JSON document against the part of JSON Schema (draft 2020-12) that the schemas under
// reports/schema use. A keyword that it does not know is an error of its own: a check that looks
// away would pass everything.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gridscope::test {

// What is wrong, each with the place in the document; empty when it fits.
[[nodiscard]] std::vector<std::string> schema_errors(const nlohmann::json& schema,
                                                     const nlohmann::json& document);

}  // namespace gridscope::test
