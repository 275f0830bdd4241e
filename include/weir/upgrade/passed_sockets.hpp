// Listening sockets that systemd passed to this process (socket activation, sd_listen_fds(3)). PassedSockets
// owns each socket until the listener with the socket's address takes it. Belongs to the main thread.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/owned_descriptor.hpp"

#include <string>
#include <vector>

namespace weir::upgrade {

class PassedSockets {
 public:
  // Takes the sockets that LISTEN_FDS announces, if LISTEN_PID is this process. Removes the variables from
  // the environment, so that no child process uses the sockets.
  [[nodiscard]] static PassedSockets of_environment();

  // Returns all sockets that listen at `address`, and gives up their ownership. If `address` is a name,
  // returns the sockets at any address of the name. A socket at "[::]" also matches "0.0.0.0", because
  // systemd opens "[::]" if only a port is configured.
  [[nodiscard]] std::vector<net::ListeningSocket> take(const base::Endpoint& address);
  // Returns true if an earlier take() found a socket for this address.
  [[nodiscard]] bool took(const base::Endpoint& address) const;
  // Returns the addresses of the sockets that no take() has returned.
  [[nodiscard]] std::vector<std::string> unclaimed() const;

 private:
  std::vector<net::OwnedDescriptor> sockets_;
  std::vector<base::Endpoint> taken_;
};

}  // namespace weir::upgrade
