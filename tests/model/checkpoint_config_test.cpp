#include "gridscope/model/checkpoint_config.hpp"

#include <gmock/gmock.h>

#include "support/memory_repository.hpp"

namespace gridscope::model {
namespace {

using test::IsOk;
using test::Listing;
using test::MemoryRepository;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ConfigEitherWay : public ::testing::TestWithParam<Listing> {
 protected:
  MemoryRepository repository_{GetParam()};

  ConfigFiles read(const std::string& folder = "") {
    auto files = read_config_files(repository_, folder);
    EXPECT_THAT(files, IsOk());
    return files ? *std::move(files) : ConfigFiles();
  }
};
INSTANTIATE_TEST_SUITE_P(CheckpointConfig, ConfigEitherWay,
                         ::testing::Values(Listing::kGiven, Listing::kNone));

TEST_P(ConfigEitherWay, ReadsTheConfigOfAFolder) {
  repository_.add("config.json", R"({"model_type": "root"})")
      .add("sub/config.json",
           R"({"model_type": "sub", "quantization_config": {"quant_method": "awq"}})");
  EXPECT_EQ(read().config.model_type, "root");
  const ConfigFiles sub = read("sub/");
  EXPECT_EQ(sub.config.model_type, "sub");
  EXPECT_EQ(sub.quantization->method, "awq");
}

TEST_P(ConfigEitherWay, AsksSideFilesWhenTheConfigClaimsNothing) {
  repository_.add("config.json", "{}").add("quantize_config.json", R"({"bits": 4})");
  const ConfigFiles files = read();
  EXPECT_EQ(files.quantization->method, "gptq");
  EXPECT_EQ(files.quantization->config_source, "quantize_config.json");
}

TEST_P(ConfigEitherWay, PrefersTheConfigToSideFiles) {
  repository_.add("config.json", R"({"quantization_config": {"quant_method": "awq"}})")
      .add("quantize_config.json", R"({"bits": 4})");
  EXPECT_EQ(read().quantization->method, "awq");
}

TEST_P(ConfigEitherWay, TakesAMissingConfigForNoError) {
  const ConfigFiles files = read();
  EXPECT_EQ(files.config.source, "");
  EXPECT_FALSE(files.quantization);
  EXPECT_THAT(files.findings, IsEmpty());
}

TEST_P(ConfigEitherWay, ReportsWhatCannotBeUsed) {
  repository_.add("config.json", "{broken").add("quantize_config.json", "[");
  const ConfigFiles files = read();
  ASSERT_THAT(files.findings, SizeIs(2));
  EXPECT_EQ(files.findings[0].code, "CONFIG_MISSING");
  EXPECT_EQ(files.findings[0].severity, Severity::kWarning);
  EXPECT_THAT(files.findings[0].message, HasSubstr("config.json cannot be used"));
}

TEST_P(ConfigEitherWay, NamesAPointerOfGitLfs) {
  repository_.add("config.json", "version https://git-lfs.github.com/spec/v1\noid sha256:" +
                                     std::string(64, 'a') + "\nsize 1234\n");
  const ConfigFiles files = read();
  ASSERT_THAT(files.findings, SizeIs(1));
  EXPECT_EQ(files.findings[0].code, "LFS_POINTER");
  EXPECT_EQ(files.findings[0].severity, Severity::kWarning);
  EXPECT_THAT(files.findings[0].message, HasSubstr("config.json is the Git LFS pointer"));
  EXPECT_THAT(files.findings[0].remedy, HasSubstr("git lfs pull"));
}

TEST_P(ConfigEitherWay, FindsWhatStandsInForAConfig) {
  repository_.add("params.json", R"({"dim": 8})");
  const auto files = read_substitute_config(repository_, "");
  ASSERT_THAT(files, IsOk());
  EXPECT_EQ(files->config.source, "params.json");
  EXPECT_EQ(files->config.hidden_size, 8U);
}

}  // namespace
}  // namespace gridscope::model
