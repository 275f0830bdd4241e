// Stores a pointer to the object that a coroutine awaits, so that other code can cancel the wait. The
// destructor sets the pointer to null. Lives in the frame of that coroutine.
#pragma once

namespace weir::proxy {

template <class T>
class ScopedCancelTarget {
 public:
  // Sets `target` to `object`, which the coroutine awaits. `target` must outlive this object. REQUIRES that
  // `target` is null.
  ScopedCancelTarget(T*& target, T& object) noexcept : target_(target) { target_ = &object; }
  ~ScopedCancelTarget() { target_ = nullptr; }
  ScopedCancelTarget(const ScopedCancelTarget&) = delete;
  ScopedCancelTarget& operator=(const ScopedCancelTarget&) = delete;

 private:
  T*& target_;
};

}  // namespace weir::proxy
