// BodyObserver sees the pieces of a body while a relay sends them. It does not delay the body. An observer
// belongs to one exchange; only the thread of its worker uses it.
#pragma once

#include <string_view>

namespace weir::proxy {

class BodyObserver {
 public:
  // Receives the next piece before it is sent. The piece is valid during the call only.
  virtual void see(std::string_view piece) = 0;
  // Called when the body is complete, before its end is sent. `trailers`: the lines of the trailer section.
  virtual void complete(std::string_view trailers) = 0;
  // Returns true if complete() needs the trailers. The relay then keeps the trailers in memory until the body
  // is complete.
  [[nodiscard]] virtual bool wants_trailers() const noexcept { return true; }

 protected:
  ~BodyObserver() = default;
};

}  // namespace weir::proxy
