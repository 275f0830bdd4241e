// The way of connections to another process, where one has taken over.
#pragma once

#include <string_view>

namespace weir::proxy {

class Passage {
 public:
  virtual ~Passage() = default;
  // Takes a copy of a plain connection that has come by `listener` (its address as configured) and is between
  // two requests, with what was read of the next. False: it stays here. Any worker's thread.
  [[nodiscard]] virtual bool take(int fd, std::string_view listener, std::string_view unread) noexcept = 0;
};

}  // namespace weir::proxy
