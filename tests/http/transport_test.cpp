#include "gridscope/http/transport.hpp"

#include <gtest/gtest.h>

#include "support/matchers.hpp"

namespace gridscope::http {
namespace {

using ::testing::Eq;
using ::testing::Pointee;

TEST(Headers, FindsTheFirstOfANameWhateverItsCase) {
  Headers headers = {{"ETag", "\"a\""}, {"Link", "one"}};
  headers.add("link", "two");
  EXPECT_THAT(headers.find("LINK"), Pointee(Eq("one")));
  EXPECT_THAT(headers.find("etag"), Pointee(Eq("\"a\"")));
  EXPECT_EQ(headers.find("Location"), nullptr);
}

TEST(Headers, KeepsAllInOrder) {
  Headers headers;
  headers.add("B", "1");
  headers.add("A", "2");
  headers.add("b", "3");
  ASSERT_EQ(headers.all().size(), 3U);
  EXPECT_EQ(headers.all()[0].name, "B");
  EXPECT_EQ(headers.all()[2].value, "3");
}

TEST(MethodName, IsAsSent) {
  EXPECT_EQ(method_name(Method::kGet), "GET");
  EXPECT_EQ(method_name(Method::kHead), "HEAD");
  EXPECT_EQ(method_name(Method::kPost), "POST");
}

}  // namespace
}  // namespace gridscope::http
