// The way of connections to another process, where one has taken over.
#pragma once

#include "weir/http/preamble.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// What whoever takes a connection over does not see in its socket.
struct Introduction {
  std::optional<http::Ends> ends;   // as the client sees them; absent: the socket's own
  std::string certificate_subject;  // verified; empty: the client showed none
  // The socket is one end of a pair: TLS stays with whoever sends it, and passes on what it has deciphered.
  bool relayed = false;
};

class Passage {
 public:
  virtual ~Passage() = default;
  // Takes a copy of a connection that has come by `listener` (its address as configured) and is between two
  // requests, with what was read of the next. False: it stays here. Any worker's thread.
  [[nodiscard]] virtual bool take(int fd, std::string_view listener, const Introduction& introduction,
                                  std::string_view unread) noexcept = 0;
};

}  // namespace weir::proxy
