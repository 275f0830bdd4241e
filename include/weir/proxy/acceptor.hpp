// Where clients come in: one listening socket of one worker.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/proxy/worker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace weir::proxy {

class Session;

// Told of what a person should know: a system that refuses connections, at most once a second; a client whose
// certificate is not trusted, at most eight times a second, and then how many more there were; a session that
// broke.
using Complain = std::function<void(const std::string&)>;

// What an entrance does, beside its socket.
struct AcceptorSettings {
  net::TlsContext tls;            // null for plain HTTP
  bool proxy_protocol = false;    // what connects says first for whom
  std::string listener{};         // its address, for whoever takes its connections over
  std::size_t most_sessions = 1;  // of the worker; above it idle ones go, or new clients wait in the backlog
};

class Acceptor {
 public:
  // The worker outlives the entrance, and the entrance what it has begun: its loop has ended, or
  // is_drained().
  Acceptor(Worker& worker, net::AcceptorSocket acceptor, AcceptorSettings settings, Complain complain);

  // Begins to accept. A full descriptor table makes it pause, not spin.
  void open();
  // Takes none for now, and those that come wait in the kernel; takes them again.
  void hold();
  // Serves a connection that another process has accepted, and what that has read of it. Takes the descriptor
  // over; throws where memory runs out, or it is no connection.
  void adopt(int connection, const ConnectionInfo& connection_info, std::string_view read);
  void resume();
  // Takes no more; connections go on.
  void close();
  // For connections that come from now on.
  void renew(AcceptorSettings settings) noexcept { settings_ = std::move(settings); }
  // Closed, and nothing that came by it is left: it may go.
  [[nodiscard]] bool is_drained() const noexcept { return closed_ && !accepting_ && sessions_ == 0; }

 private:
  [[nodiscard]] net::Awaitable<void> accept_all();
  [[nodiscard]] net::Awaitable<net::ErrorCode> accept_one();
  [[nodiscard]] net::Awaitable<void> pause();
  [[nodiscard]] net::Awaitable<void> make_room();
  [[nodiscard]] bool is_full() const noexcept { return worker_.sessions >= settings_.most_sessions; }
  void evict(IdleEvictor::Rank most) noexcept;
  [[nodiscard]] net::Task<void> serve(std::unique_ptr<Session> session);
  void complain_of_accepting(const net::ErrorCode& ec);
  void complain_of_client(const Session& session);
  void admit(net::Socket socket, const net::RawEndpoint& peer, ConnectionsPerIp::Slot slot);
  void begin(std::unique_ptr<Session> session);
  void note_end(const std::exception_ptr& failure);

  Worker& worker_;
  net::AcceptorSocket acceptor_;
  net::Timer pause_;
  AcceptorSettings settings_;
  Complain complain_;
  std::chrono::steady_clock::time_point quiet_until_{};
  std::chrono::steady_clock::time_point refusals_until_{};  // when they are counted anew
  unsigned refusals_ = 0;
  std::uint64_t untold_refusals_ = 0;
  std::size_t sessions_ = 0;
  bool accepting_ = false;
  bool held_ = false;
  bool closed_ = false;
};

}  // namespace weir::proxy
