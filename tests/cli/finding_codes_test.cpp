// The sources are searched for codes, so that none can be reported which the table does not
// explain.

#include "gridscope/cli/finding_codes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "support/checkpoints.hpp"
#include "support/matchers.hpp"

namespace gridscope::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::IsSubsetOf;
using Codes = std::set<std::string>;

void collect(const std::string& source, Codes& codes) {
  // What is given to `code`, stands before a severity, or is warned of.
  static const std::regex kCode(
      R"re((code = |kCode = |kMismatch = |warn(_once)?\(\s*|missed\(\s*)"([A-Z_]+)"|"([A-Z_]+)",\s*Severity::)re");
  for (std::sregex_iterator at(source.begin(), source.end(), kCode), end; at != end; ++at) {
    codes.insert((*at)[3].matched ? (*at)[3].str() : (*at)[4].str());
  }
}

Codes codes_of_the_sources() {
  Codes codes;
  for (const auto& entry : fs::recursive_directory_iterator(GRIDSCOPE_SOURCE_DIR "/src")) {
    if (entry.path().extension() == ".cpp" && entry.path().stem() != "finding_codes") {
      collect(test::to_text(test::read_file(entry.path())), codes);
    }
  }
  return codes;
}

Codes codes_of_the_table() {
  Codes codes;
  for (const Term& code : finding_codes()) codes.emplace(code.name);
  for (const Term& code : warning_codes()) codes.emplace(code.name);
  return codes;
}

TEST(FindingCodes, AreThoseOfTheSources) {
  const Codes found = codes_of_the_sources();
  EXPECT_TRUE(found.contains("TIED_HEAD_STORED") && found.contains("HUB_WARNING"));
  EXPECT_THAT(found, IsSubsetOf(codes_of_the_table()));
  EXPECT_THAT(codes_of_the_table(), IsSubsetOf(found));
}

TEST(FindingCodes, StandInOrder) {
  EXPECT_TRUE(std::ranges::is_sorted(finding_codes(), {}, &Term::name));
  EXPECT_TRUE(std::ranges::is_sorted(warning_codes(), {}, &Term::name));
}

}  // namespace
}  // namespace gridscope::cli
