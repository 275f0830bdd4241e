// Who looks at a body while it is relayed, without delaying it.
#pragma once

#include <string_view>

namespace weir::proxy {

class BodyObserver {
 public:
  // The next piece, before it is sent; valid during the call.
  virtual void see(std::string_view piece) = 0;
  // The body is complete, and its end not sent yet.
  virtual void complete() = 0;

 protected:
  ~BodyObserver() = default;
};

}  // namespace weir::proxy
