// Stores a pointer to the object that a coroutine awaits, so that other code can cancel the wait. The
// destructor sets the pointer to null. Lives in the frame of that coroutine.
#pragma once

namespace weir::proxy {

template <class T>
class ScopedCancelTarget {
 public:
  // `name`: the pointer that this object sets. It must outlive this object. REQUIRES that `name` is null.
  ScopedCancelTarget(T*& name, T& what) noexcept : name_(name) { name_ = &what; }
  ~ScopedCancelTarget() { name_ = nullptr; }
  ScopedCancelTarget(const ScopedCancelTarget&) = delete;
  ScopedCancelTarget& operator=(const ScopedCancelTarget&) = delete;

 private:
  T*& name_;
};

}  // namespace weir::proxy
