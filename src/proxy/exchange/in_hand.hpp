// What somebody else may want to stop while a coroutine awaits it: named for so long, however that ends.
#pragma once

namespace weir::proxy {

template <class T>
class InHand {
 public:
  // `name` outlives this. REQUIRES that it names nothing yet.
  InHand(T*& name, T& what) noexcept : name_(name) { name_ = &what; }
  ~InHand() { name_ = nullptr; }
  InHand(const InHand&) = delete;
  InHand& operator=(const InHand&) = delete;

 private:
  T*& name_;
};

}  // namespace weir::proxy
