#include "gridscope/quant/weight_decoder.hpp"

#include "support/matchers.hpp"

namespace gridscope::quant {
namespace {

using ::testing::HasSubstr;

TEST(MakeDecoder, RefusesByNameWhatIsOnlyIdentified) {
  for (int i = 0; i <= static_cast<int>(Scheme::kUnknown); ++i) {
    const auto scheme = static_cast<Scheme>(i);
    if (identify_only(scheme).empty()) continue;
    EXPECT_THAT(make_decoder({.name = "lm_head", .scheme = scheme}),
                test::Fails(ErrorCode::kUnsupported,
                            HasSubstr("weight \"lm_head\" (" + std::string(scheme_key(scheme)) +
                                      "): recognised, but not decoded: " +
                                      std::string(identify_only(scheme)))));
  }
}

TEST(Strips, CountTheBytesOfAllPieces) {
  EXPECT_EQ((Strips{.offset = 4, .length = 8, .stride = 64, .count = 3}.bytes()), 24);
}

class NothingDecoder final : public WeightDecoder {
 public:
  [[nodiscard]] const WeightLayout& layout() const override { return layout_; }
  [[nodiscard]] TileNeeds needs(RowRange /*rows*/) const override { return {}; }
  [[nodiscard]] Status decode(const Tile& /*tile*/, RowRange /*rows*/,
                              RowBlock& /*out*/) const override {
    return {};
  }

 private:
  WeightLayout layout_;
};

TEST(WeightDecoder, OffersNoInt4RowsUnlessItSaysSo) {
  Int4Rows rows;
  rows.rows = 7;
  const Result<bool> offered = NothingDecoder().decode_int4(Tile{}, {.first = 0, .count = 1}, rows);
  ASSERT_THAT(offered, test::IsOk());
  EXPECT_FALSE(*offered);
  EXPECT_EQ(rows.rows, 7);
}

}  // namespace
}  // namespace gridscope::quant
