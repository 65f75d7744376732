#include "gridscope/app/context.hpp"

#include <utility>

#include "gridscope/http/curl_transport.hpp"

namespace gridscope::app {
namespace {

// The names that curl and OpenSSL know, in curl's order.
std::string certificate_file(const store::Environment& environment) {
  for (const std::string_view variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (auto file = environment(variable); file && !file->empty()) return *std::move(file);
  }
  return {};
}

http::TransportOptions transport_options(const Settings& settings, const store::HubSettings& hub) {
  return {.connections_per_host = settings.connections,
          .connect_timeout = settings.timeout.value_or(hub.metadata_timeout),
          .stall_timeout = settings.timeout.value_or(hub.transfer_timeout),
          .proxy = settings.proxy,
          .ca_file = certificate_file(settings.environment),
          .user_agent = "gridscope/" GRIDSCOPE_VERSION};
}

Status check(const Settings& settings) {
  if (settings.connections == 0) {
    return fail(ErrorCode::kInvalidArgument, "connections: expected at least 1, found 0");
  }
  if (settings.timeout && settings.timeout->count() <= 0) {
    return fail(ErrorCode::kInvalidArgument, "timeout: expected more than 0");
  }
  return {};
}

}  // namespace

Context::Context(Settings settings, Observer& observer, std::stop_token stop)
    : settings_(std::move(settings)), counter_(observer), stop_(std::move(stop)) {}

Result<std::unique_ptr<Context>> Context::make(Settings settings, Observer& observer,
                                               std::stop_token stop) {
  GRIDSCOPE_CHECK(check(settings));
  return std::unique_ptr<Context>(new Context(std::move(settings), observer, std::move(stop)));
}

Result<const store::HubSettings*> Context::hub() {
  const std::lock_guard lock(mutex_);
  if (!hub_) {
    GRIDSCOPE_TRY(hub_, store::read_hub_settings(settings_.environment));
  }
  return &*hub_;
}

Result<io::RangeCache*> Context::cache() {
  const std::lock_guard lock(mutex_);
  if (!cache_) {
    GRIDSCOPE_CHECK(open_cache());
  }
  return cache_.get();
}

Result<http::Client*> Context::client() {
  GRIDSCOPE_TRY(const store::HubSettings* const settings, hub());
  const std::lock_guard lock(mutex_);
  if (!client_) {
    GRIDSCOPE_TRY(transport_, http::make_curl_transport(transport_options(settings_, *settings)));
    client_ = std::make_unique<http::Client>(*transport_, clock_, counter_,
                                             http::Client::Options{.stop = stop_});
  }
  return client_.get();
}

// Without a home there is no default place; everything works without a cache, so that is no error.
Status Context::open_cache() {
  if (settings_.cache == Settings::Cache::kBypass) return {};
  const Result<std::filesystem::path> directory =
      settings_.cache_directory ? *settings_.cache_directory : io::default_cache_directory();
  if (!directory) {
    counter_.on_event(Warning{.code = "CACHE_UNAVAILABLE",
                              .message = directory.error().message,
                              .remedy = directory.error().remedy});
    return {};
  }
  settings_.cache_directory = *directory;
  GRIDSCOPE_TRY(cache_,
                io::RangeCache::open({.directory = *directory, .max_bytes = settings_.cache_bytes},
                                     counter_));
  return {};
}

}  // namespace gridscope::app
