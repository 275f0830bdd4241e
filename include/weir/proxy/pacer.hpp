// Pacer decides when weir may forward the next octets of a body. A pacer belongs to one exchange; only the
// thread of its worker uses it.
#pragma once

#include <cstddef>

namespace weir::proxy {

class Pacer {
 public:
  // Returns how many octets of a body weir may forward now. `size`: the octets at hand, above 0. If the
  // result is 0, the caller must wait before it asks again.
  [[nodiscard]] virtual std::size_t admit(std::size_t size) = 0;
  // Must be called after admit() with the number of octets that weir did forward, at most the result of
  // admit().
  virtual void passed(std::size_t octets) noexcept = 0;

 protected:
  ~Pacer() = default;
};

}  // namespace weir::proxy
