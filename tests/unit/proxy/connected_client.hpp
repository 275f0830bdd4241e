// A worker with a listener, and a client that is connected to it over a socket pair.
#pragma once

#include "unit/proxy/lone_worker.hpp"

#include "weir/net/reactor.hpp"
#include "weir/proxy/acceptor.hpp"

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::proxy {

class ConnectedClient : public LoneWorker {
 public:
  explicit ConnectedClient(Configuration configuration,
                           AcceptorSettings settings = {.tls = {}, .most_sessions = 10})
      : LoneWorker(std::move(configuration)),
        acceptor_(worker,
                  std::move(*net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0")))
                      .into_acceptor(context.get_executor()),
                  std::move(settings), [](const std::string&) {}) {
    acceptor_.open();
    connect();
  }
  ~ConnectedClient() {
    ::close(client_);
    acceptor_.close();
    turn();
    net::Reactor::of(context.get_executor()).end_tasks();
  }

  // Sends octets, and returns what weir sends until nothing is left to do.
  std::string send(std::string_view text) {
    if (::send(client_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      std::abort();
    turn();
    std::string got(1 << 16, '\0');
    const auto size = ::recv(client_, got.data(), got.size(), 0);
    return got.substr(0, size > 0 ? static_cast<std::size_t>(size) : 0);
  }
  // Closes the connection, if there is one, and opens another one.
  void connect() {
    if (client_ >= 0) ::close(client_);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    client_ = ends[0];
    ::fcntl(client_, F_SETFL, O_NONBLOCK);
    acceptor_.adopt(ends[1], ConnectionInfo{}, {});
  }
  // From now on, weir cannot send anything to the client, but does not notice that before it tries.
  void stop_receiving() { ::shutdown(client_, SHUT_RD); }

 private:
  // Runs all handlers that are ready.
  void turn() {
    context.restart();
    while (context.poll_one() != 0) {
    }
  }

  Acceptor acceptor_;
  int client_ = -1;
};

}  // namespace weir::proxy
