#pragma once

// The one back end that speaks to the network.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "gridscope/core/result.hpp"
#include "gridscope/http/transport.hpp"

namespace gridscope::http {

struct TransportOptions {
  std::size_t connections_per_host = 16;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{10'000};  // connected, and not a single byte moves
  std::string proxy = {};    // empty: http_proxy, https_proxy, no_proxy apply
  std::string ca_file = {};  // empty: the system's certificates
  std::string user_agent = {};
};

// All the headers of one response together, interim responses included.
inline constexpr std::size_t kMaxHeaderBytes = 262'144;

// Transport by libcurl, each exchange on its sender's thread, connections kept for the next one. A
// request that a kept connection loses before its first response byte is sent once more on a new
// one; nothing else is repeated. Must outlive every send(). Errors: kInternal when libcurl cannot
// start.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_curl_transport(
    const TransportOptions& options);

}  // namespace gridscope::http
