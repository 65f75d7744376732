// Carrying a plan out: what comes of it does not depend on how, and what cannot be read is no
// answer.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "analysis/small_models.hpp"
#include "gridscope/quant/cpu_target.hpp"
#include "support/checkpoint_values.hpp"
#include "support/fakes.hpp"

namespace gridscope::analysis {
namespace {

using test::Fails;
using test::int4_format;
using test::IsOk;
using test::on_grid;
using test::plain_format;
using test::SmallCheck;
using test::SmallModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string layer(std::uint64_t number) {
  return "model.layers." + std::to_string(number) + ".";
}

// Layers of a projection and a norm.
SmallModel model_of(std::uint64_t layers, const test::Format& format, unsigned seed = 1) {
  SmallModel model;
  for (std::uint64_t i = 0; i < layers; ++i) {
    model.weight(layer(i) + "mlp.down_proj", on_grid(32, 128, 32, seed + static_cast<unsigned>(i)),
                 format);
    model.norm(layer(i) + "input_layernorm",
               std::vector<double>(128, 1.0 + 0.25 * static_cast<double>(i % 3)));
  }
  return model;
}

std::vector<std::uint32_t> all_items(const GridPlan& plan) {
  std::vector<std::uint32_t> all(plan.items.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

Result<GridResults> run(const GridPlan& plan, std::size_t jobs = 2) {
  NullObserver observer;
  GridResults results;
  const auto keep = [&](std::uint32_t item, const GridItemResult& result) -> Status {
    EXPECT_TRUE(results.emplace(item, result).second) << "an item is done once";
    return {};
  };
  GRIDSCOPE_CHECK(run_grid_items(plan, all_items(plan), {.jobs = jobs}, observer, keep));
  return results;
}

GridTensor tensor_of(const Result<GridResults>& results, std::uint32_t item) {
  EXPECT_THAT(results, IsOk());
  return results ? std::get<GridTensor>(results->at(item)) : GridTensor();
}

TEST(GridRun, GivesAResultForEveryItem) {
  const SmallCheck check(model_of(4, plain_format()),
                         {model_of(4, int4_format()), model_of(4, int4_format(), 2)});
  const GridPlan plan = check.plan();
  const auto results = run(plan);
  ASSERT_THAT(results, IsOk());
  ASSERT_THAT(*results, SizeIs(16));
  for (const std::uint32_t item : all_items(plan)) {
    const auto alone = test::compare_item(plan, item);
    ASSERT_THAT(alone, IsOk());
    EXPECT_EQ(results->at(item), *alone);
  }
  EXPECT_EQ(tensor_of(results, 0).verdict, Verdict::kExact);
  EXPECT_EQ(tensor_of(results, 8).verdict, Verdict::kDifferentModel);
}

TEST(GridRun, GivesTheSameWhateverTheJobs) {
  SmallModel source = model_of(6, plain_format());
  SmallModel build = model_of(6, int4_format(), 3);
  // More than one tile.
  const quant::LeveledWeight large = on_grid(1300, 3072);
  source.weight("model.layers.6.mlp.down_proj", large, plain_format(Dtype::kF32));
  quant::LeveledWeight edited = large;
  for (std::size_t i = 0; i < edited.levels.size(); i += 5) {
    edited.levels[i] = static_cast<std::int16_t>(edited.levels[i] ^ 1);
  }
  build.weight("model.layers.6.mlp.down_proj", edited, int4_format());
  const SmallCheck check(source, {build});
  const GridPlan plan = check.plan();
  ASSERT_GT(cost_of(plan, std::vector<std::uint32_t>{6}).tile_reads, 2U);
  const auto one = run(plan, 1);
  const auto four = run(plan, 4);
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(four, IsOk());
  EXPECT_EQ(*one, *four);
}

TEST(GridRun, DoesOnlyTheItemsThatAreAskedFor) {
  const SmallCheck check(model_of(4, plain_format()), {model_of(4, int4_format())});
  const GridPlan plan = check.plan();
  NullObserver observer;
  std::vector<std::uint32_t> done;
  const auto keep = [&](std::uint32_t item, const GridItemResult&) -> Status {
    done.push_back(item);
    return {};
  };
  const std::vector<std::uint32_t> wanted = {1, 6};
  EXPECT_THAT(run_grid_items(plan, wanted, {.jobs = 1}, observer, keep), IsOk());
  std::ranges::sort(done);
  EXPECT_THAT(done, ElementsAre(1, 6));
  EXPECT_THAT(run_grid_items(plan, {}, {.jobs = 1}, observer, keep), IsOk());
  EXPECT_THAT(done, SizeIs(2));
}

TEST(GridRun, ReportsProgressUpToTheEnd) {
  const SmallCheck check(model_of(3, plain_format()), {model_of(3, int4_format())});
  const GridPlan plan = check.plan();
  test::CollectingObserver observer;
  const auto keep = [](std::uint32_t, const GridItemResult&) -> Status { return {}; };
  ASSERT_THAT(run_grid_items(plan, all_items(plan), {.jobs = 1}, observer, keep), IsOk());
  const auto steps = observer.steps();
  ASSERT_THAT(steps, SizeIs(6));
  std::uint64_t most = 0;
  for (const auto& step : steps) {
    EXPECT_EQ(step.stage, "comparing");
    EXPECT_EQ(step.total, cost_of(plan, all_items(plan)).bytes);
    most = std::max(most, step.done);
  }
  EXPECT_EQ(most, steps.front().total);
}

// ---- what is broken, and what cannot be read ----------------------------------------------------

TEST(GridRun, TakesAMissingCompanionForAnAnswer) {
  test::Format bare = int4_format();
  bare.suffixes.erase(quant::Companion::kScale);
  SmallModel build = model_of(1, int4_format());
  build.weight(layer(1) + "mlp.down_proj", on_grid(32, 128, 32, 2), bare)
      .norm(layer(1) + "input_layernorm", std::vector<double>(128, 1.25));
  const SmallCheck check(model_of(2, plain_format()), {build});
  const auto results = run(check.plan());
  EXPECT_EQ(tensor_of(results, 0).verdict, Verdict::kExact);
  const GridTensor broken = tensor_of(results, 1);
  EXPECT_EQ(broken.name, layer(1) + "mlp.down_proj");
  EXPECT_EQ(broken.verdict, Verdict::kCorrupt);
  EXPECT_THAT(broken.fault, HasSubstr("scale"));
  EXPECT_EQ(broken.totals, GridTotals());
}

// A zero point out of range in each of two tiles: the fault does not depend on which comes first.
// Groups are settled where a build kept the levels, searched after a block in which it did not or
// in which a weight is no number, and all searched where the scalar target works.
TEST(GridRun, SaysTheSameOfGroupsHoweverTheyAreFound) {
  const quant::LeveledWeight weight = on_grid(400, 3072);
  quant::LeveledWeight moved = weight;
  for (std::size_t i = 0; i < 30UL * 3072; ++i) {
    moved.levels[i] = static_cast<std::int16_t>(moved.levels[i] ^ 1);
  }
  quant::LeveledWeight odd = weight;
  odd.scales[3 * 96 + 5] = std::numeric_limits<double>::quiet_NaN();
  const auto source_grid = [](const quant::LeveledWeight& of, const quant::LeveledWeight& build) {
    SmallModel source;
    source.weight(layer(0) + "mlp.down_proj", of, plain_format());
    SmallModel built;
    built.weight(layer(0) + "mlp.down_proj", build, int4_format());
    const SmallCheck check(source, {built});
    const GridTensor tensor = tensor_of(run(check.plan(), 1), 0);
    EXPECT_THAT(quant::force_cpu_target("SCALAR"), IsOk());
    EXPECT_EQ(tensor_of(run(check.plan(), 1), 0), tensor);
    EXPECT_THAT(quant::force_cpu_target(""), IsOk());
    return tensor.source_grid;
  };
  EXPECT_EQ(source_grid(weight, weight).on_grid, 400U * 96);
  EXPECT_EQ(source_grid(weight, moved), source_grid(weight, weight));
  EXPECT_EQ(source_grid(odd, weight).non_finite, 1U);
  EXPECT_EQ(source_grid(odd, weight).on_grid, 400U * 96 - 1);
}

TEST(GridRun, NamesTheSameFaultWhateverTheJobs) {
  const quant::LeveledWeight weight = on_grid(1440, 3072);
  quant::LeveledWeight zeroed = weight;
  zeroed.zeros.resize(zeroed.scales.size());
  test::Format unpacked = int4_format();
  unpacked.like[quant::Companion::kZeroPoint] = quant::StoredTensor{.dtype = Dtype::kI8};
  auto spec = quant::pack(zeroed, unpacked.like);
  ASSERT_THAT(spec, IsOk());
  auto& zeros = (*spec)[quant::Companion::kZeroPoint]->data;
  zeros.front() = zeros.back() = std::byte{100};
  SmallModel source;
  source.weight(layer(0) + "mlp.down_proj", weight, plain_format(Dtype::kF64));
  SmallModel build;
  build.stored(layer(0) + "mlp.down_proj", *spec, unpacked);
  const SmallCheck check(source, {build});
  ASSERT_EQ(cost_of(check.plan(), std::vector<std::uint32_t>{0}).tile_reads, 6U) << "three tiles";
  const GridTensor one = tensor_of(run(check.plan(), 1), 0);
  EXPECT_EQ(one.verdict, Verdict::kCorrupt);
  EXPECT_FALSE(one.fault.empty());
  EXPECT_EQ(tensor_of(run(check.plan(), 4), 0), one);
}

// All reads fail from some byte of the file on.
void break_file(model::Checkpoint& checkpoint, std::uint64_t from) {
  auto& source = checkpoint.files[0].source;
  std::vector<std::byte> bytes(source->size());
  ASSERT_THAT(source->read_at(0, bytes), IsOk());
  source = std::make_shared<test::FaultySource>(io::make_memory_source(std::move(bytes), {}),
                                                test::FaultPlan{.fault_at = from});
}

TEST(GridRun, EndsWhenEitherSideCannotBeRead) {
  for (const std::size_t side : {0U, 1U}) {
    SmallCheck check(model_of(3, plain_format()), {model_of(3, int4_format())});
    break_file(check.checkpoint(side), check.checkpoint(side).files[0].bytes - 1);
    for (const std::size_t jobs : {1U, 4U}) {
      EXPECT_THAT(run(check.plan(), jobs), Fails(ErrorCode::kUnavailable, HasSubstr("")));
    }
  }
}

TEST(GridRun, EndsWithTheErrorOfTheSink) {
  const SmallCheck check(model_of(8, plain_format()), {model_of(8, int4_format())});
  const GridPlan plan = check.plan();
  NullObserver observer;
  const auto refuse = [](std::uint32_t, const GridItemResult&) -> Status {
    return fail(ErrorCode::kLimit, "the disk is full");
  };
  EXPECT_THAT(run_grid_items(plan, all_items(plan), {.jobs = 2}, observer, refuse),
              Fails(ErrorCode::kLimit, HasSubstr("the disk is full")));
}

TEST(GridRun, StopsWhenItIsAskedTo) {
  const SmallCheck check(model_of(8, plain_format()), {model_of(8, int4_format())});
  const GridPlan plan = check.plan();
  NullObserver observer;
  std::stop_source stop;
  std::atomic<int> done = 0;
  const auto keep = [&](std::uint32_t, const GridItemResult&) -> Status {
    ++done;
    stop.request_stop();
    return {};
  };
  const GridRunOptions options{.jobs = 1, .stop = stop.get_token()};
  EXPECT_THAT(run_grid_items(plan, all_items(plan), options, observer, keep),
              Fails(ErrorCode::kCancelled, HasSubstr("")));
  EXPECT_GE(done, 1);
  EXPECT_LT(done, 16);
  const int before = done;
  EXPECT_THAT(run_grid_items(plan, all_items(plan), options, observer, keep),
              Fails(ErrorCode::kCancelled, HasSubstr("")));
  EXPECT_EQ(done, before) << "nothing is begun after the request";
}

// ---- memory -------------------------------------------------------------------------------------

// Takes its time over each read, and remembers how many bytes were asked for at once.
class SlowSource final : public io::ByteSource {
 public:
  explicit SlowSource(std::shared_ptr<const io::ByteSource> file) : file_(std::move(file)) {}

  [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
  [[nodiscard]] const io::SourceIdentity& identity() const override { return file_->identity(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    const std::uint64_t now = in_flight_ += into.size();
    std::uint64_t most = most_;
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Status status = file_->read_at(offset, into);
    in_flight_ -= into.size();
    return status;
  }
  [[nodiscard]] std::uint64_t most_in_flight() const { return most_; }

 private:
  std::shared_ptr<const io::ByteSource> file_;
  mutable std::atomic<std::uint64_t> in_flight_ = 0;
  mutable std::atomic<std::uint64_t> most_ = 0;
};

// Plain tensors of 12 MiB on each side, all zero, which cannot be cut into tiles: of the 64 MiB of
// one job two may be in memory, although four threads read.
TEST(GridRun, KeepsWithinItsMemory) {
  constexpr std::uint64_t kValues = 6ULL * 1024 * 1024;
  constexpr std::uint64_t kReaders = 4;
  test::CheckpointBuilder builder;
  for (std::uint64_t i = 0; i < 2 * kReaders; ++i) {
    builder.module({.name = layer(i) + "input_layernorm"})
        .tensor("weight", Dtype::kBF16, {kValues});
  }
  model::Checkpoint checkpoint = builder.build();
  const auto slow = std::make_shared<SlowSource>(checkpoint.files[0].source);
  checkpoint.files[0].source = slow;
  const auto plan = plan_grid_check(test::side_of(checkpoint, "source"),
                                    {test::side_of(checkpoint, "build")}, {});
  ASSERT_THAT(plan, IsOk());
  ASSERT_THAT(plan->items, SizeIs(2 * kReaders));
  ASSERT_GT(cost_of(*plan, std::vector<std::uint32_t>{0}).bytes * (kReaders - 1), kGridBytesPerJob);
  const auto results = run(*plan, 1);
  ASSERT_THAT(results, IsOk());
  EXPECT_THAT(*results, SizeIs(2 * kReaders));
  EXPECT_EQ(slow->most_in_flight(), 2 * kValues * 2) << "two tiles, one side of each at a time";
}

// A tile that is larger than all memory that a run may take is read when it is alone.
TEST(GridRun, ReadsATileThatIsTooLargeAlone) {
  constexpr std::uint64_t kValues = 20ULL * 1024 * 1024;
  test::CheckpointBuilder builder;
  for (std::uint64_t i = 0; i < 3; ++i) {
    builder.module({.name = layer(i) + "input_layernorm"})
        .tensor("weight", Dtype::kBF16, {kValues});
  }
  model::Checkpoint checkpoint = builder.build();
  const auto slow = std::make_shared<SlowSource>(checkpoint.files[0].source);
  checkpoint.files[0].source = slow;
  const auto plan = plan_grid_check(test::side_of(checkpoint, "source"),
                                    {test::side_of(checkpoint, "build")}, {});
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(run(*plan, 1), IsOk());
  EXPECT_EQ(slow->most_in_flight(), kValues * 2);
}

}  // namespace
}  // namespace gridscope::analysis
