#include "gridscope/quant/scheme.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gridscope::quant {
namespace {

TEST(Scheme, HasAKeyOfItsOwn) {
  std::set<std::string_view> keys;
  for (int i = 0; i <= static_cast<int>(Scheme::kUnknown); ++i) {
    const auto scheme = static_cast<Scheme>(i);
    EXPECT_TRUE(keys.insert(scheme_key(scheme)).second) << scheme_key(scheme);
    EXPECT_FALSE(scheme_title(scheme).empty()) << scheme_key(scheme);
  }
}

TEST(Scheme, KeysFollowTheEnum) {
  EXPECT_EQ(scheme_key(Scheme::kPlain), "plain");
  EXPECT_EQ(scheme_key(Scheme::kCtSparse), "ct_sparse");
  EXPECT_EQ(scheme_key(Scheme::kGptq), "gptq");
  EXPECT_EQ(scheme_key(Scheme::kUnknown), "unknown");
}

TEST(Scheme, SaysWhyItIsOnlyIdentified) {
  EXPECT_EQ(identify_only(Scheme::kCtPackQuantized), "");
  EXPECT_EQ(identify_only(Scheme::kMarlin), "its codes are permuted for one GPU kernel");
  EXPECT_EQ(identify_only(Scheme::kUnknown), "no known format explains its tensors");
}

}  // namespace
}  // namespace gridscope::quant
