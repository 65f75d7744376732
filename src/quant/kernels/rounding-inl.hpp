// Rounding to integers that are known to be small, in half the operations that Highway takes to be
// right for large ones as well. Compiled once for every CPU target that includes it, hence the
// guard that toggles.

#if defined(GRIDSCOPE_QUANT_KERNELS_ROUNDING_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GRIDSCOPE_QUANT_KERNELS_ROUNDING_INL
#undef GRIDSCOPE_QUANT_KERNELS_ROUNDING_INL
#else
#define GRIDSCOPE_QUANT_KERNELS_ROUNDING_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace gridscope::quant::HWY_NAMESPACE {

// Added to 1.5 * 2^23 a small number leaves itself, rounded to nearest even, in the low bits of the
// float. Anything is given for numbers of 2^22 and beyond, infinite ones and NaN.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::VFromD<hwy::HWY_NAMESPACE::RebindToSigned<D>> nearest_small(
    D d, hwy::HWY_NAMESPACE::VFromD<D> value, hwy::HWY_NAMESPACE::VFromD<D> factor) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> ints;
  const auto magic = hn::Set(d, 12582912.0F);
  const auto sum = hn::MulAdd(value, factor, magic);
  return hn::Sub(hn::BitCast(ints, sum), hn::BitCast(ints, magic));
}

}  // namespace gridscope::quant::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
