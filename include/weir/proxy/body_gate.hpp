// BodyGate decides how much of a body a relay may send now.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::proxy {

class BodyGate {
 public:
  // Returns how many octets at the front of `octets` may be sent. If not all of them may, the relay holds the
  // rest back, and the next call begins with the rest.
  [[nodiscard]] virtual std::size_t admit(std::string_view octets) = 0;

 protected:
  ~BodyGate() = default;
};

}  // namespace weir::proxy
