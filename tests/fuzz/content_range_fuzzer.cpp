// A Content-Range that is accepted is in order.

#include "fuzz/fuzz_target.hpp"
#include "gridscope/http/content_range.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gridscope;
  const auto range = http::parse_content_range(test::fuzz_text(data, size));
  if (!range) {
    test::require_fit_to_show(range.error());
    return 0;
  }
  test::require(range->span || range->total);
  if (range->span) test::require(range->span->first <= range->span->last);
  if (range->span && range->total) test::require(range->span->last < *range->total);
  return 0;
}
