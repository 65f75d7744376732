// Vectors put together from 128-bit blocks of different places. Compiled once for every CPU target
// that includes it, hence the guard that toggles.

#if defined(GRIDSCOPE_QUANT_KERNELS_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GRIDSCOPE_QUANT_KERNELS_BLOCKS_INL
#undef GRIDSCOPE_QUANT_KERNELS_BLOCKS_INL
#else
#define GRIDSCOPE_QUANT_KERNELS_BLOCKS_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// Block j from the 16 bytes at first + j * stride.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::VFromD<D> load_blocks(D d, const std::uint8_t* first,
                                                     std::size_t stride) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hn::MaxLanes(D{}) == 16) {
    return hn::LoadU(d, first);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks(half, first + hn::MaxLanes(D{}) / 32 * stride, stride),
                       load_blocks(half, first, stride));
  }
}

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
