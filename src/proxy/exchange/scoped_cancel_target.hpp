// What somebody else may want to stop while a coroutine awaits it: named for so long, however that ends.
#pragma once

namespace weir::proxy {

template <class T>
class ScopedCancelTarget {
 public:
  // `name` outlives this. REQUIRES that it names nothing yet.
  ScopedCancelTarget(T*& name, T& what) noexcept : name_(name) { name_ = &what; }
  ~ScopedCancelTarget() { name_ = nullptr; }
  ScopedCancelTarget(const ScopedCancelTarget&) = delete;
  ScopedCancelTarget& operator=(const ScopedCancelTarget&) = delete;

 private:
  T*& name_;
};

}  // namespace weir::proxy
