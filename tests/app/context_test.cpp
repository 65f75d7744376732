#include "gridscope/app/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "app/support.hpp"
#include "support/checkpoints.hpp"
#include "support/fakes.hpp"
#include "support/http_server.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::app {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(Context, ReadsTheHubsVariables) {
  test::CollectingObserver observer;
  const auto context = Context::make(
      settings_with({{"HF_ENDPOINT", "https://mirror.example"}, {"HF_HUB_OFFLINE", "1"}}),
      observer);
  ASSERT_THAT(context, test::IsOk());
  const auto hub = (*context)->hub();
  ASSERT_THAT(hub, test::IsOk());
  EXPECT_EQ((*hub)->endpoint, "https://mirror.example");
  EXPECT_TRUE((*hub)->offline);
  EXPECT_THAT(observer.warnings(), IsEmpty());
}

TEST(Context, RefusesVariablesThatMakeNoSenseWhenTheyMatter) {
  NullObserver observer;
  const auto context = Context::make(settings_with({{"HF_ENDPOINT", "ftp://x"}}), observer);
  ASSERT_THAT(context, test::IsOk());
  EXPECT_THAT((*context)->cache(), test::IsOk());
  EXPECT_THAT((*context)->hub(),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("HF_ENDPOINT")));
  EXPECT_THAT((*context)->client(),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("HF_ENDPOINT")));
  const auto token = Context::make(settings_with({{"HF_TOKEN", "${SECRET}"}}), observer);
  ASSERT_THAT(token, test::IsOk());
  EXPECT_THAT((*token)->hub(), test::Fails(ErrorCode::kInvalidArgument, Not(HasSubstr("SECRET"))));
}

TEST(Context, MakesItsPartsOnce) {
  NullObserver observer;
  const auto context = Context::make(settings_with({}), observer);
  ASSERT_THAT(context, test::IsOk());
  EXPECT_EQ((*context)->hub().value(), (*context)->hub().value());
  EXPECT_EQ((*context)->client().value(), (*context)->client().value());
}

TEST(Context, RefusesSettingsThatMakeNoSense) {
  NullObserver observer;
  Settings none = settings_with({});
  none.connections = 0;
  EXPECT_THAT(Context::make(none, observer),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("connections")));
  Settings impatient = settings_with({});
  impatient.timeout = std::chrono::milliseconds(0);
  EXPECT_THAT(Context::make(impatient, observer),
              test::Fails(ErrorCode::kInvalidArgument, HasSubstr("timeout")));
}

TEST(Context, OpensTheCacheUnlessItIsBypassed) {
  const test::TempDir directory;
  NullObserver observer;
  Settings settings = settings_with({});
  settings.cache_directory = directory / "cache";
  const auto without = Context::make(settings, observer);
  ASSERT_THAT(without, test::IsOk());
  EXPECT_EQ((*without)->cache().value(), nullptr);
  settings.cache = Settings::Cache::kUse;
  const auto with = Context::make(settings, observer);
  ASSERT_THAT(with, test::IsOk());
  EXPECT_NE((*with)->cache().value(), nullptr);
  EXPECT_EQ((*with)->settings().cache_directory, directory / "cache");
}

TEST(Context, RefusesACacheThatIsAFile) {
  const test::TempDir directory;
  test::write_file(directory / "file", std::string_view());
  NullObserver observer;
  Settings settings = settings_with({});
  settings.cache = Settings::Cache::kUse;
  settings.cache_directory = directory / "file";
  const auto context = Context::make(settings, observer);
  ASSERT_THAT(context, test::IsOk());
  EXPECT_THAT((*context)->cache(), test::Fails(ErrorCode::kInvalidArgument, _));
}

// Takes a variable away for as long as it lives.
class Unset {
 public:
  explicit Unset(const char* name) : name_(name) {
    const char* const value = ::getenv(name);
    value_ = value == nullptr ? "" : value;
    ::unsetenv(name);
  }
  Unset(const Unset&) = delete;
  Unset& operator=(const Unset&) = delete;
  ~Unset() {
    if (!value_.empty()) ::setenv(name_, value_.c_str(), 1);
  }

 private:
  const char* name_;
  std::string value_;
};

TEST(Context, GoesOnWithoutACacheWhenThereIsNoHome) {
  const Unset home("HOME");
  const Unset cache("XDG_CACHE_HOME");
  test::CollectingObserver observer;
  Settings settings = settings_with({});
  settings.cache = Settings::Cache::kUse;
  const auto context = Context::make(settings, observer);
  ASSERT_THAT(context, test::IsOk());
  EXPECT_THAT(observer.warnings(), IsEmpty());
  EXPECT_EQ((*context)->cache().value(), nullptr);
  ASSERT_THAT(observer.warnings(), SizeIs(1));
  EXPECT_EQ(observer.warnings()[0].code, "CACHE_UNAVAILABLE");
}

TEST(Context, TrustsTheCertificatesThatAreNamed) {
  const test::HttpServer server(
      [](const test::HttpRequest& request) { return test::serve_content(request, "hello"); },
      {.security = test::HttpServerOptions::Security::kTls});
  const http::Request request{.url = http::parse_url(server.url("/x")).value()};
  NullObserver observer;
  for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const auto context =
        Context::make(settings_with({{variable, server.certificate_file()}}), observer);
    ASSERT_THAT(context, test::IsOk());
    EXPECT_THAT((*context)->client().value()->fetch(request, 1000), test::IsOk()) << variable;
  }
  const auto stranger = Context::make(settings_with({}), observer);
  ASSERT_THAT(stranger, test::IsOk());
  EXPECT_THAT((*stranger)->client().value()->fetch(request, 1000),
              test::Fails(ErrorCode::kPermission, _));
}

TEST(Context, SaysWhoItIs) {
  const test::HttpServer server(
      [](const test::HttpRequest& request) { return test::serve_content(request, "hello"); });
  NullObserver observer;
  const auto context = Context::make(settings_with({}), observer);
  ASSERT_THAT(context, test::IsOk());
  const http::Request request{.url = http::parse_url(server.url("/x")).value()};
  ASSERT_THAT((*context)->client().value()->fetch(request, 1000), test::IsOk());
  EXPECT_EQ(server.requests().at(0).field("User-Agent"), "gridscope/" GRIDSCOPE_VERSION);
}

}  // namespace
}  // namespace gridscope::app
