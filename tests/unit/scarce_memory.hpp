// Lets tests make memory run out, for the calling thread only. One source file of the test program must
// define operator new by take_memory(), because a replacement of operator new may not be inline.
#pragma once

#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

namespace weir::tests {

// The number of allocations that succeed before one fails. Negative: none fails.
inline thread_local long allocations_left = -1;
inline thread_local bool only_one_fails = false;  // true: allocations after the failed one succeed again

inline void* take_memory(std::size_t size) {
  if (allocations_left == 0) {
    if (only_one_fails) allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}

// Runs `step` until it succeeds. In run n, its n-th allocation fails. After each failure calls `unchanged`.
// Returns the number of allocations of `step`.
template <class Step, class Check>
int fail_each_allocation(Step step, Check unchanged) {
  for (int n = 0;; ++n) {
    allocations_left = n;
    bool failed = false;
    try {
      step();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    allocations_left = -1;
    if (!failed) return n;
    unchanged();
    if (::testing::Test::HasFailure()) return n;
  }
}

}  // namespace weir::tests
