#include "gridscope/http/transport.hpp"

#include <algorithm>
#include <utility>

#include "gridscope/http/fields.hpp"

namespace gridscope::http {

void Headers::add(std::string name, std::string value) {
  headers_.push_back({std::move(name), std::move(value)});
}

const std::string* Headers::find(std::string_view name) const {
  const auto it = std::ranges::find_if(
      headers_, [&](const Header& header) { return equals_ignoring_case(header.name, name); });
  return it == headers_.end() ? nullptr : &it->value;
}

std::string_view method_name(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kHead:
      return "HEAD";
    case Method::kPost:
      break;
  }
  return "POST";
}

}  // namespace gridscope::http
