#pragma once

// What the arithmetic alone costs, without files: kernels on one thread, next to how fast the same
// thread can read the same memory.

namespace gridscope::bench {

// Prints its lines. Requires: runs > 0.
void bench_kernels(int runs);

}  // namespace gridscope::bench
