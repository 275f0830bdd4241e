// Where clients come in: one listening socket of one worker.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/proxy/worker.hpp"

#include <chrono>
#include <cstddef>
#include <functional>

#include <openssl/ssl.h>

namespace weir::proxy {

// Told of what a person should know: a system that refuses connections, at most once a second; a session that
// broke.
using Complain = std::function<void(const std::string&)>;

class Entrance {
 public:
  // `tls`: null for plain HTTP. `most_sessions`: above it new clients wait in the backlog. All outlive the
  // entrance, and the entrance outlives its loop.
  Entrance(Worker& worker, net::Acceptor acceptor, SSL_CTX* tls, std::size_t most_sessions,
           Complain complain);

  // Begins to accept. A full descriptor table makes it pause, not spin.
  void open();
  // Takes no more; connections go on.
  void close();

 private:
  [[nodiscard]] net::Awaitable<void> accept_all();
  [[nodiscard]] net::Awaitable<void> pause();
  void complain_of_accepting(const net::ErrorCode& ec);
  void admit(net::Socket socket, const net::RawEndpoint& peer);

  Worker& worker_;
  net::Acceptor acceptor_;
  net::Timer pause_;
  SSL_CTX* tls_;
  std::size_t most_sessions_;
  Complain complain_;
  std::chrono::steady_clock::time_point quiet_until_{};
  bool closed_ = false;
};

}  // namespace weir::proxy
