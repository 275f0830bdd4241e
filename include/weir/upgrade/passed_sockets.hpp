// Listening sockets that systemd passed to this process (socket activation, sd_listen_fds(3)). Each socket
// stays here until the listener of its address takes it. Belongs to the main thread.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/owned_descriptor.hpp"

#include <string>
#include <vector>

namespace weir::upgrade {

class PassedSockets {
 public:
  // Takes the sockets of LISTEN_FDS if LISTEN_PID is this process. Removes both variables from the
  // environment, so that no child process uses the sockets.
  [[nodiscard]] static PassedSockets of_environment();

  // Returns all sockets that listen at `address`; for a name, at any address of the name. A socket at "[::]"
  // also matches "0.0.0.0", because systemd opens "[::]" for a bare port.
  [[nodiscard]] std::vector<net::ListeningSocket> take(const base::Endpoint& address);
  // Returns true if take() found a socket for the address.
  [[nodiscard]] bool took(const base::Endpoint& address) const;
  // Returns the addresses of the sockets that no listener has taken.
  [[nodiscard]] std::vector<std::string> unclaimed() const;

 private:
  std::vector<net::OwnedDescriptor> sockets_;
  std::vector<base::Endpoint> taken_;
};

}  // namespace weir::upgrade
