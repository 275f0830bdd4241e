// Listening sockets that systemd passed to this process (socket activation, sd_listen_fds(3)): each stays
// here until the listener of its address takes it. Belongs to the main thread.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/owned_descriptor.hpp"

#include <string>
#include <vector>

namespace weir::app {

class PassedSockets {
 public:
  // Takes what LISTEN_FDS announces, if LISTEN_PID is this process, and removes both from the environment, so
  // that no other program takes the sockets for its own.
  [[nodiscard]] static PassedSockets of_environment();

  // Returns all sockets that listen where `address` says: at any of its addresses, where it is a name. "[::]"
  // is also what "0.0.0.0" means, for systemd opens that one for a port alone.
  [[nodiscard]] std::vector<net::ListeningSocket> take(const base::Endpoint& address);
  // Whether take() found any for such an address.
  [[nodiscard]] bool took(const base::Endpoint& address) const;
  // The addresses of those that nobody has taken.
  [[nodiscard]] std::vector<std::string> unclaimed() const;

 private:
  std::vector<net::OwnedDescriptor> sockets_;
  std::vector<base::Endpoint> taken_;
};

}  // namespace weir::app
