// Runs a whole session in one process: a client's octets, a real session and scripted servers.
//
// The client uses a socket pair, and the servers use a unix socket. Octets are therefore available as soon as
// they are sent, so a run needs no clock and ends by itself. The watchdog does not run, so there are no
// timeouts.
#pragma once

#include "unit/proxy/lone_worker.hpp"
#include "unit/proxy/scripted_servers.hpp"

#include "weir/net/reactor.hpp"
#include "weir/proxy/acceptor.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/local/stream_protocol.hpp>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::proxy {

// The octets that the client and the servers send, and the size of the pieces in which they send them.
struct SessionScript {
  std::string client;
  // For each received head, a server sends the next of these answers. When no answers are left, the servers
  // close their connections.
  std::vector<std::string> answers;
  std::size_t client_piece = 1 << 20;
  std::size_t server_piece = 1 << 20;
};

class SessionRun {
 public:
  // `path`: the path of the unix socket. No other run may use it at the same time.
  SessionRun(SessionScript script, const std::string& path)
      : script_(std::move(script)), servers_(path, script_.answers, script_.server_piece) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    client_ = ends[0];
    set_nonblocking(client_);
    fixture_.emplace(upstream_at(path));
    fixture_->acceptor.open();
    fixture_->acceptor.adopt(ends[1], ConnectionInfo{}, {});
  }
  ~SessionRun() {
    if (client_ >= 0) ::close(client_);
  }
  SessionRun(const SessionRun&) = delete;
  SessionRun& operator=(const SessionRun&) = delete;

  // Runs until no octet can be sent any more. Then the client disconnects, and after that the servers do.
  void run() {
    settle();
    ::close(std::exchange(client_, -1));
    settle();
    servers_.close_all();
    settle();
  }

  // Returns the octets that the client received.
  [[nodiscard]] const std::string& to_client() const noexcept { return to_client_; }
  // Returns the octets that the servers received, one string for each connection.
  [[nodiscard]] std::vector<std::string> to_servers() const { return servers_.received(); }
  // Returns the number of sessions that have not ended.
  [[nodiscard]] std::size_t sessions() const noexcept { return fixture_->worker.sessions; }

 private:
  static constexpr int kQuietTurns = 8;

  using Fleets = std::vector<std::shared_ptr<upstream::ServerGroup>>;

  struct ServingFixture : LoneWorker {
    explicit ServingFixture(const upstream::UpstreamSettings& settings)
        : LoneWorker(configuration_of(settings), nullptr, fleets_of(settings)) {}
    ~ServingFixture() {
      acceptor.close();
      turn();
      net::Reactor::of(context.get_executor()).end_tasks();
    }
    bool turn() {
      bool moved = false;
      context.restart();
      while (context.poll_one() != 0) moved = true;
      return moved;
    }

    Acceptor acceptor{worker,
                      std::move(*net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0")))
                          .into_acceptor(context.get_executor()),
                      AcceptorSettings{.tls = {}, .most_sessions = 10}, [](const std::string&) {}};
  };

  static upstream::UpstreamSettings upstream_at(const std::string& path) {
    upstream::UpstreamSettings settings;
    settings.name = "api";
    settings.servers.push_back({.address = *base::parse_endpoint("unix:" + path)});
    settings.retry.attempts = 1;
    return settings;
  }
  static Configuration configuration_of(const upstream::UpstreamSettings& settings) {
    Configuration config;
    config.upstreams.push_back(settings);
    config.routes.push_back(
        {.name = "all", .match = {}, .upstream_name = settings.name, .respond = std::nullopt});
    return config;
  }
  static Fleets fleets_of(const upstream::UpstreamSettings& settings) {
    const auto& path = settings.servers.front().address.unix_path;
    const upstream::Server server{"unix:" + path, {net::asio::local::stream_protocol::endpoint(path)}};
    return {std::make_shared<upstream::ServerGroup>(settings, std::vector{server})};
  }

  static void set_nonblocking(int fd) { ::fcntl(fd, F_SETFL, O_NONBLOCK); }

  void settle() {
    for (int quiet = 0; quiet < kQuietTurns; ++quiet) {
      bool moved = speak();
      moved = fixture_->turn() || moved;
      moved = hear() || moved;
      moved = servers_.serve() || moved;
      if (moved) quiet = 0;
    }
  }

  // Sends the client's next piece, or closes its sending side.
  bool speak() {
    if (client_ < 0 || done_speaking_) return false;
    const auto piece = std::string_view(script_.client).substr(said_, script_.client_piece);
    if (piece.empty()) {
      done_speaking_ = true;
      ::shutdown(client_, SHUT_WR);
      return true;
    }
    const auto sent = ::send(client_, piece.data(), piece.size(), MSG_NOSIGNAL);
    if (sent > 0) said_ += static_cast<std::size_t>(sent);
    if (sent < 0 && errno != EAGAIN) done_speaking_ = true;
    return sent > 0;
  }
  bool hear() { return client_ >= 0 && receive(client_, to_client_) > 0; }

  const SessionScript script_;
  ScriptedServers servers_;
  int client_ = -1;
  std::size_t said_ = 0;
  bool done_speaking_ = false;
  std::string to_client_;
  std::optional<ServingFixture> fixture_;
};

}  // namespace weir::proxy
