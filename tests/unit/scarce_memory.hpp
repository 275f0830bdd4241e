// Memory that runs out when a test says so.
//
// For the thread that says it alone. One file of a program defines operator new by take_memory(): a
// replacement may not be inline.
#pragma once

#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

namespace weir::tests {

inline thread_local long allocations_left = -1;   // below zero: as many as anybody wants
inline thread_local bool only_one_fails = false;  // then there is as much as anybody wants again

inline void* take_memory(std::size_t size) {
  if (allocations_left == 0) {
    if (only_one_fails) allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}

// Fails its n-th allocation, for every n that it makes; how many it made.
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
