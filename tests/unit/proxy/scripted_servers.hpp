// Servers on a unix socket that answer by a script. They run on the caller's thread.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/local/stream_protocol.hpp>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

namespace weir::proxy {

// Appends the received octets to `into`. Returns the number of received octets: 0 if the peer has closed,
// negative if no octet has arrived.
inline ssize_t receive(int fd, std::string& into) {
  char piece[4096];
  const auto got = ::recv(fd, piece, sizeof piece, MSG_DONTWAIT);
  if (got > 0) into.append(piece, static_cast<std::size_t>(got));
  return got;
}

class ScriptedServers {
 public:
  // For each received head, a server sends the next of `answers`, in pieces of `piece` octets. A server
  // closes its connection when no answers are left. `path`: the path of the unix socket; no other servers may
  // use it.
  ScriptedServers(std::string path, std::vector<std::string> answers, std::size_t piece)
      : path_(std::move(path)), answers_(std::move(answers)), piece_(piece) {
    ::unlink(path_.c_str());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const boost::asio::local::stream_protocol::endpoint address(path_);
    if (::bind(listener_, address.data(), static_cast<socklen_t>(address.size())) != 0) std::abort();
    ::listen(listener_, 64);
  }
  ~ScriptedServers() {
    close_all();
    ::close(listener_);
    ::unlink(path_.c_str());
  }
  ScriptedServers(const ScriptedServers&) = delete;
  ScriptedServers& operator=(const ScriptedServers&) = delete;

  // Receives and sends as much as is possible without waiting. Returns true if any octet was received or
  // sent.
  bool serve() {
    bool moved = false;
    for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      servers_.push_back({.fd = fd});
      moved = true;
    }
    for (auto& server : servers_) moved = serve_one(server) || moved;
    return moved;
  }
  void close_all() {
    for (auto& server : servers_) close(server);
  }
  // Returns the octets that the servers received, one string for each connection.
  [[nodiscard]] std::vector<std::string> received() const {
    std::vector<std::string> all;
    for (const auto& server : servers_) all.push_back(server.received);
    return all;
  }

 private:
  // One connection of a client to the servers.
  struct Server {
    int fd = -1;
    std::string received{};
    std::string to_send{};
    std::size_t searched = 0;  // number of octets of `received` in which heads were already searched
    bool closing = false;      // true: the server closes the connection after it has sent everything
  };

  bool serve_one(Server& server) {
    if (server.fd < 0) return false;
    const auto got = receive(server.fd, server.received);
    if (got == 0) close(server);
    if (got > 0) answer(server);
    return send_more(server) || got >= 0;
  }
  void answer(Server& server) {
    for (;;) {
      const auto end = server.received.find("\r\n\r\n", server.searched);
      if (end == std::string::npos) return;
      server.searched = end + 4;
      if (answered_ == answers_.size())
        server.closing = true;
      else
        server.to_send += answers_[answered_++];
    }
  }
  bool send_more(Server& server) {
    if (server.fd < 0) return false;
    if (server.to_send.empty()) {
      if (server.closing) close(server);
      return false;
    }
    const auto piece = std::string_view(server.to_send).substr(0, piece_);
    const auto sent = ::send(server.fd, piece.data(), piece.size(), MSG_NOSIGNAL);
    if (sent > 0) server.to_send.erase(0, static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN) close(server);
    return sent > 0;
  }
  static void close(Server& server) {
    if (server.fd >= 0) ::close(std::exchange(server.fd, -1));
  }

  const std::string path_;
  const std::vector<std::string> answers_;
  const std::size_t piece_;
  int listener_ = -1;
  std::vector<Server> servers_;
  std::size_t answered_ = 0;
};

}  // namespace weir::proxy
