// BodyGate decides how much of a body a relay may send now. A gate belongs to one exchange; only the thread
// of its worker uses it.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::proxy {

class BodyGate {
 public:
  // Returns how many octets at the front of `octets` the relay may send now. The relay keeps the other
  // octets, and passes them to the next call again, followed by newer octets.
  [[nodiscard]] virtual std::size_t admit(std::string_view octets) = 0;

 protected:
  ~BodyGate() = default;
};

}  // namespace weir::proxy
