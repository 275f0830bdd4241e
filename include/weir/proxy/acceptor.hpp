// Acceptor accepts client connections on one listening socket of one worker. server::WorkerThread owns the
// acceptor; only the worker's thread uses it.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/task.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/proxy/ask_settings.hpp"
#include "weir/proxy/http2_settings.hpp"
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

// Receives a line for the log in three cases:
// * accept() failed: at most once a second.
// * A client's certificate is not trusted, or a client abuses HTTP/2: at most eight a second. A later line
//   says how many lines were omitted.
// * A session ended with an exception.
using Complain = std::function<void(const std::string&)>;

// Settings of an acceptor, apart from its socket.
struct AcceptorSettings {
  net::TlsContext tls;            // null for plain HTTP
  bool proxy_protocol = false;    // true: each connection begins with a PROXY protocol header
  std::string listener{};         // configured address; port 0 is replaced by the actual one
  std::string name{};             // name of the listener for routes and rules; empty: none
  std::size_t most_sessions = 1;  // largest number of sessions of the worker; see is_full()
  std::shared_ptr<const Http2Settings> http2 = std::make_shared<const Http2Settings>();
  // How the listener answers questions; null: the listener proxies. Sessions share this object, because they
  // may use it after a reload has replaced the settings.
  std::shared_ptr<const AskSettings> ask{};
};

class Acceptor {
 public:
  // The worker must outlive the acceptor. The acceptor must outlive its sessions: destroy it once the
  // worker's loop has ended or is_drained() returns true.
  Acceptor(Worker& worker, net::AcceptorSocket acceptor, AcceptorSettings settings, Complain complain);

  // Begins to accept connections. If accept() fails, for example because no descriptor is free, tries again
  // after a pause.
  void open();
  // Stops accepting until resume() is called. New connections wait in the kernel's backlog.
  void hold();
  // Serves a connection that another process accepted. `read`: bytes of the connection that the other process
  // has already read. Takes ownership of the descriptor `connection`. If memory runs out, closes the
  // descriptor.
  void adopt(int connection, const ConnectionInfo& connection_info, std::string_view read);
  void resume();
  // Stops accepting for good. Open connections continue.
  void close();
  // Uses these settings for connections accepted from now on.
  void renew(AcceptorSettings settings) noexcept;
  // Returns true if the acceptor is closed and all its sessions have ended. The acceptor may then be
  // destroyed.
  [[nodiscard]] bool is_drained() const noexcept { return closed_ && !accepting_ && sessions_ == 0; }

 private:
  void defer() noexcept;
  [[nodiscard]] net::Task<void> accept_all();
  [[nodiscard]] net::Task<net::ErrorCode> accept_one();
  [[nodiscard]] net::Task<void> pause();
  [[nodiscard]] net::Task<void> make_room();
  // Returns true if the worker has most_sessions sessions. In that case the acceptor evicts idle sessions,
  // and new clients wait in the kernel's backlog.
  [[nodiscard]] bool is_full() const noexcept { return worker_.sessions >= settings_.most_sessions; }
  void evict(IdleEvictor::Rank most) noexcept;
  [[nodiscard]] net::Task<void> serve(std::unique_ptr<Session> session);
  void complain_of_accepting(const net::ErrorCode& ec);
  void complain_of_client(const std::string& what);
  void admit(net::OwnedDescriptor connection, const net::RawEndpoint& peer, ConnectionsPerIp::Slot slot);
  void begin(std::unique_ptr<Session> session);
  void note_end(const std::exception_ptr& failure);

  Worker& worker_;
  net::AcceptorSocket acceptor_;
  net::Timer pause_;
  AcceptorSettings settings_;
  Complain complain_;
  std::chrono::steady_clock::time_point quiet_until_{};
  std::chrono::steady_clock::time_point lines_reset_at_{};  // when lines_about_clients_ is reset to 0
  unsigned lines_about_clients_ = 0;  // log lines about clients since the last reset, including omitted lines
  std::uint64_t omitted_lines_ = 0;   // log lines about clients that were omitted
  std::size_t sessions_ = 0;
  unsigned accepted_in_turn_ = 0;
  bool accepting_ = false;  // true: the accept loop is running
  bool held_ = false;       // true between hold() and resume()
  bool closed_ = false;
};

}  // namespace weir::proxy
