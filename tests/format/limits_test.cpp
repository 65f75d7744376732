#include "gridscope/format/limits.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gridscope::format {
namespace {

TEST(Limits, HaveANameEach) {
  EXPECT_EQ(kNamedLimits.size() * sizeof(std::uint64_t), sizeof(Limits));
  std::set<std::string_view> names;
  Limits limits;
  for (const auto& [name, limit] : kNamedLimits) {
    EXPECT_NE(limits.*limit, 0U) << name << " names a limit that another one names";
    limits.*limit = 0;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), kNamedLimits.size());
}

TEST(Limits, AreNamedInTheRemedy) {
  const Error error = over_limit(&Limits::shards, "more than 2 shards").value();
  EXPECT_EQ(error.code, ErrorCode::kLimit);
  EXPECT_EQ(error.message, "more than 2 shards");
  EXPECT_EQ(error.remedy,
            "no known checkpoint needs as much; raise max-shards if you trust the file");
}

}  // namespace
}  // namespace gridscope::format
