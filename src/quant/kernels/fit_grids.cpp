#include <vector>

#include "gridscope/quant/codec.hpp"
#include "gridscope/quant/grid.hpp"

namespace gridscope::quant {

void fit_grids(std::span<const std::byte> bf16, std::uint64_t group_size, LevelRange range,
               std::span<GridFit> fits) {
  std::vector<double> numbers(group_size);
  std::vector<float> values(group_size);
  for (std::size_t g = 0; g < fits.size(); ++g) {
    load_numbers(Dtype::kBF16, bf16.subspan(g * group_size * 2), numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) values[i] = static_cast<float>(numbers[i]);
    fits[g] = fit_grid(values, Dtype::kBF16, range, {});
  }
}

}  // namespace gridscope::quant
