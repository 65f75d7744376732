#include "gridscope/analysis/item_comparison.hpp"

#include <utility>

#include "gridscope/model/modules.hpp"

namespace gridscope::analysis {

ComputeSlots::ComputeSlots(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) free_.push_back(std::make_unique<BlockMemory>());
}

Status ComputeSlots::with_slot(const std::function<Status(BlockMemory&)>& use) {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [this] { return !free_.empty(); });
  auto memory = std::move(free_.back());  // the one that may still be in a cache
  free_.pop_back();
  lock.unlock();
  Status status = use(*memory);
  lock.lock();
  free_.push_back(std::move(memory));
  lock.unlock();
  freed_.notify_one();
  return status;
}

Result<PairReaders> open_readers(const GridPlan& plan, const GridItem& item) {
  const model::WeightPair& pair = pair_of(plan, item);
  const GridSide& build_side = plan.builds[item.build].side;
  GRIDSCOPE_TRY(auto source,
                RowReader::open(*plan.source.checkpoint, plan.source.weights[pair.source],
                                pair.source_rows, pair.columns));
  GRIDSCOPE_TRY(auto build, RowReader::open(*build_side.checkpoint, build_side.weights[pair.build],
                                            pair.build_rows, pair.columns));
  return PairReaders{.source = std::move(source), .build = std::move(build)};
}

Result<std::unique_ptr<ItemComparison>> open_comparison(const GridPlan& plan,
                                                        const GridItem& item) {
  return item.kind == GridItem::Kind::kPlain ? open_plain_comparison(plan, item)
                                             : open_pair_comparison(plan, item);
}

GridItemResult corrupt_result(const GridPlan& plan, const GridItem& item, const Error& error) {
  const model::WeightPair& pair = pair_of(plan, item);
  const GridSide& side = plan.builds[item.build].side;
  const model::Weight& weight = side.weights[pair.build];
  if (item.kind == GridItem::Kind::kPlain) {
    PlainTensor tensor{.name = pair.name, .source_name = pair.source_name};
    tensor.values = tensor.different = pair.build_rows.count * pair.columns;
    tensor.fault = error.message;
    return tensor;
  }
  GridTensor tensor{.name = pair.name, .source_name = pair.source_name};
  tensor.shape = {pair.build_rows.count, pair.columns};
  tensor.role = model::role_key(weight.info.role);
  tensor.format = model::describe_storage(side.checkpoint->modules.modules[weight.module],
                                          side.checkpoint->tensors);
  tensor.verdict = Verdict::kCorrupt;
  tensor.fault = error.message;
  tensor.is_unsupported = error.code == ErrorCode::kUnsupported;
  return tensor;
}

}  // namespace gridscope::analysis
