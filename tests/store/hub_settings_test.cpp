#include "gridscope/store/hub_settings.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace gridscope::store {
namespace {

using namespace std::chrono_literals;
using test::Fails;
using test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string, std::less<>>;

Environment environment_of(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

HubSettings settings_of(Variables variables) {
  auto settings = read_hub_settings(environment_of(std::move(variables)));
  EXPECT_THAT(settings, IsOk());
  return settings.value_or(HubSettings{});
}

void write(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

TEST(HubSettings, AreTheHubsOwnWhenNothingIsSet) {
  const HubSettings settings = settings_of({{"HOME", "/nowhere/me"}});
  EXPECT_EQ(settings.endpoint, "https://huggingface.co");
  EXPECT_EQ(settings.token, "");
  EXPECT_EQ(settings.cache, "/nowhere/me/.cache/huggingface/hub");
  EXPECT_FALSE(settings.offline);
  EXPECT_EQ(settings.metadata_timeout, 10s);
  EXPECT_EQ(settings.transfer_timeout, 10s);
}

TEST(HubSettings, HaveNoCacheWithoutAHome) {
  EXPECT_EQ(settings_of({}).cache, "");
}

TEST(HubSettings, EndpointLosesTrailingSlashesAndKeepsAPathPrefix) {
  EXPECT_EQ(settings_of({{"HF_ENDPOINT", "http://mirror:8080/hf//"}}).endpoint,
            "http://mirror:8080/hf");
  EXPECT_EQ(settings_of({{"HF_ENDPOINT", ""}}).endpoint, "https://huggingface.co");
}

TEST(HubSettings, RefuseAnEndpointThatIsNoUrl) {
  for (const char* bad : {"huggingface.co", "ftp://x", "https://x/?a=b", "https://u:pw@x"}) {
    EXPECT_THAT(
        read_hub_settings(environment_of({{"HF_ENDPOINT", bad}})),
        Fails(ErrorCode::kInvalidArgument, AllOf(HasSubstr("HF_ENDPOINT"), Not(HasSubstr("pw")))))
        << bad;
  }
}

TEST(HubSettings, CacheFollowsTheOrderOfVariables) {
  Variables variables{{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "/xdg"}};
  EXPECT_EQ(settings_of(variables).cache, "/xdg/huggingface/hub");
  variables["HF_HOME"] = "~/hf";
  EXPECT_EQ(settings_of(variables).cache, "/home/me/hf/hub");
  variables["HUGGINGFACE_HUB_CACHE"] = "/old";
  EXPECT_EQ(settings_of(variables).cache, "/old");
  variables["HF_HUB_CACHE"] = "$XDG_CACHE_HOME/new/${UNSET}/$";
  EXPECT_EQ(settings_of(variables).cache, "/xdg/new/${UNSET}/$");
}

TEST(HubSettings, TokenComesFromTheFirstVariableThatHoldsOne) {
  EXPECT_EQ(settings_of({{"HF_TOKEN", " hf_a\r\n"}, {"HUGGING_FACE_HUB_TOKEN", "hf_b"}}).token,
            "hf_a");
  EXPECT_EQ(settings_of({{"HF_TOKEN", ""}, {"HUGGING_FACE_HUB_TOKEN", "hf_b"}}).token, "hf_b");
}

TEST(HubSettings, TokenComesFromItsFile) {
  const test::TempDir home;
  write(home / "token", "hf_file\n");
  write(home / "elsewhere", "hf_other\r\n");
  const std::string root = home.path().string();
  EXPECT_EQ(settings_of({{"HF_HOME", root}}).token, "hf_file");
  EXPECT_EQ(settings_of({{"HF_HOME", root}, {"HF_TOKEN_PATH", root + "/elsewhere"}}).token,
            "hf_other");
  EXPECT_EQ(settings_of({{"HF_HOME", root}, {"HF_TOKEN_PATH", root + "/missing"}}).token, "");
  EXPECT_EQ(settings_of({{"HF_HOME", root}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "yes"}}).token, "");
}

TEST(HubSettings, RefuseWhatCannotBeAToken) {
  const std::string with_escape = "hf_secret\x1B";
  const std::string too_long(20'000, 's');
  for (const std::string& bad : {std::string("${HF_TOKEN}"), with_escape, too_long,
                                 std::string("hf_se cret"), std::string("hf_s\xC3\xA9")}) {
    EXPECT_THAT(
        read_hub_settings(environment_of({{"HF_TOKEN", bad}})),
        Fails(ErrorCode::kInvalidArgument, AllOf(HasSubstr("HF_TOKEN"), Not(HasSubstr("hf_s")))));
  }
}

TEST(HubSettings, RefuseATokenFileThatHoldsSomethingElse) {
  const test::TempDir home;
  write(home / "token", std::string(100'000, 'x'));
  EXPECT_THAT(read_hub_settings(environment_of({{"HF_HOME", home.path().string()}})),
              Fails(ErrorCode::kInvalidArgument, HasSubstr("HF_HOME/token")));
}

TEST(HubSettings, OfflineIsWhatPythonTakesForTrue) {
  for (const char* yes : {"1", "on", "Yes", "TRUE"}) {
    EXPECT_TRUE(settings_of({{"HF_HUB_OFFLINE", yes}}).offline) << yes;
  }
  for (const char* no : {"0", "false", "2", "no"}) {
    EXPECT_FALSE(settings_of({{"HF_HUB_OFFLINE", no}, {"TRANSFORMERS_OFFLINE", "1"}}).offline)
        << no;
  }
  EXPECT_TRUE(settings_of({{"HF_HUB_OFFLINE", ""}, {"TRANSFORMERS_OFFLINE", "1"}}).offline);
}

TEST(HubSettings, TimeoutsAreWholeSeconds) {
  const HubSettings settings =
      settings_of({{"HF_HUB_ETAG_TIMEOUT", "3"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "60"}});
  EXPECT_EQ(settings.metadata_timeout, 3s);
  EXPECT_EQ(settings.transfer_timeout, 60s);
  for (const char* bad : {"0", "-1", "x", "1.5", "99999999999999999999", "100000"}) {
    EXPECT_THAT(read_hub_settings(environment_of({{"HF_HUB_ETAG_TIMEOUT", bad}})),
                Fails(ErrorCode::kInvalidArgument, HasSubstr("HF_HUB_ETAG_TIMEOUT")))
        << bad;
  }
}

TEST(HubSettings, ReadTheProcessEnvironment) {
  const Environment environment = process_environment();
  EXPECT_TRUE(environment("PATH").has_value());
  EXPECT_FALSE(environment("GRIDSCOPE_NO_SUCH_VARIABLE").has_value());
}

}  // namespace
}  // namespace gridscope::store
