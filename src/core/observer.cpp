#include "gridscope/core/observer.hpp"

namespace gridscope {

void NullObserver::on_event(const Event& /*event*/) {}

void ReadCounter::on_event(const Event& event) {
  if (const auto* read = std::get_if<RangeRead>(&event)) {
    if (read->origin == Origin::kCache) {
      ++cache_hits_;
    } else {
      bytes_ += read->bytes;
      if (read->origin == Origin::kDisk) ++requests_;
    }
  } else if (std::holds_alternative<RequestSent>(event)) {
    ++requests_;
  }
  next_.on_event(event);
}

ReadTotals ReadCounter::totals() const {
  return {.requests = requests_, .bytes = bytes_, .cache_hits = cache_hits_};
}

}  // namespace gridscope
