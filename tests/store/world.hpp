#pragma once

// What the tests of this room read from: a test Hub, a client on real connections, a clock that
// does not wait, and an eye on everything that is said and sent.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gridscope/http/client.hpp"
#include "gridscope/http/curl_transport.hpp"
#include "gridscope/io/range_cache.hpp"
#include "gridscope/store/open.hpp"
#include "support/fakes.hpp"
#include "support/hub_server.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::store {

// Bytes that are different everywhere, so that a range from the wrong place is seen.
[[nodiscard]] inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t mixed = (i * 2654435761U) >> 7U;
    text[i] = static_cast<char>(mixed ^ (i >> 16U));
  }
  return text;
}

inline constexpr std::string_view kRepo = "org/model";
inline constexpr std::string_view kToken = "hf_verysecrettoken";
inline constexpr std::string_view kLargePath = "model.safetensors";
inline constexpr std::size_t kLargeSize = 300'000;

[[nodiscard]] inline test::HubRepo small_repo() {
  test::HubRepo repo{.id = std::string(kRepo)};
  repo.files[std::string(kLargePath)] = {.text = pattern(kLargeSize),
                                         .storage = test::HubStorage::kLarge};
  repo.files["config.json"] = {.text = R"({"model_type": "tiny"})",
                               .storage = test::HubStorage::kGitCached};
  repo.files["license.txt"] = {.text = "free\n"};
  repo.files["sub/notes.txt"] = {.text = "notes\n"};
  return repo;
}

// A client on real connections. Retries take no time.
class Wire {
 public:
  explicit Wire(http::TransportOptions options = {}) {
    options.stall_timeout = std::chrono::milliseconds(300);
    options.connect_timeout = std::chrono::seconds(2);
    auto made = http::make_curl_transport(options);
    EXPECT_THAT(made, test::IsOk());
    transport_ = *std::move(made);
    client_ = std::make_unique<http::Client>(*transport_, clock, observer, http::Client::Options{});
  }

  [[nodiscard]] http::Client& client() { return *client_; }

  // Everything that was said to the user so far, in one text.
  [[nodiscard]] std::string said() const {
    std::string all;
    for (const auto& read : observer.reads()) all += read.source + '\n';
    for (const auto& request : observer.requests()) all += request.method + request.url + '\n';
    for (const auto& retry : observer.retries()) all += retry.what + retry.reason + '\n';
    for (const auto& notice : observer.warnings()) all += notice.message + notice.remedy + '\n';
    for (const auto& detail : observer.details()) all += detail + '\n';
    return all;
  }

  test::ManualClock clock;
  test::CollectingObserver observer;

 private:
  std::unique_ptr<http::Transport> transport_;
  std::unique_ptr<http::Client> client_;
};

[[nodiscard]] inline std::int64_t seconds_of(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::seconds>(clock.wall_now().time_since_epoch())
      .count();
}

// A Hub with one repository, and what is needed to open it.
class World {
 public:
  explicit World(test::HubServerOptions options = {}, test::HubRepo repo = small_repo())
      : hub({std::move(repo)}, with_clock(std::move(options))) {
    auto opened = io::RangeCache::open({.directory = directory / "cache"}, wire.observer);
    EXPECT_THAT(opened, test::IsOk());
    cache = *std::move(opened);
  }

  // Without a cache of ours and without one of the Hub's.
  [[nodiscard]] StoreContext context() {
    StoreContext made{.client = &wire.client(), .observer = &wire.observer};
    made.hub.endpoint = hub.endpoint();
    made.hub.cache = directory / "hub";
    return made;
  }
  [[nodiscard]] StoreContext caching_context() {
    StoreContext made = context();
    made.cache = cache.get();
    return made;
  }

  // Requests that reached the server under that name.
  [[nodiscard]] std::vector<test::HttpRequest> requests_to(std::string_view host) const {
    std::vector<test::HttpRequest> found;
    for (test::HttpRequest& request : hub.requests()) {
      if (request.host() == host) found.push_back(std::move(request));
    }
    return found;
  }

  const test::TempDir directory;
  Wire wire;
  test::HubServer hub;
  std::unique_ptr<io::RangeCache> cache;

 private:
  test::HubServerOptions with_clock(test::HubServerOptions options) {
    options.now = [this] { return seconds_of(wire.clock); };
    return options;
  }
};

[[nodiscard]] inline ModelReference hub_reference(std::string revision = "",
                                                  std::string path = "") {
  return {.kind = ReferenceKind::kHub,
          .text = std::string(kRepo),
          .location = std::string(kRepo),
          .revision = std::move(revision),
          .path = std::move(path)};
}

// The bytes [offset, offset + length) as text, or the error.
[[nodiscard]] inline Result<std::string> read_text(const io::ByteSource& source,
                                                   std::uint64_t offset, std::size_t length) {
  std::string text(length, '\0');
  GRIDSCOPE_CHECK(source.read_at(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

[[nodiscard]] inline Result<std::string> read_all(const io::ByteSource& source) {
  return read_text(source, 0, source.size());
}

}  // namespace gridscope::store
