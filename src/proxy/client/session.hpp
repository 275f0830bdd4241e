// One client connection from accept to close: TLS, the loop over requests, deadlines and draining. The
// coroutine Acceptor::serve() owns the session; only the worker's thread uses it.
#pragma once

#include "proxy/client/client_peer.hpp"
#include "proxy/client/client_watch.hpp"
#include "proxy/client/http1_stream.hpp"

#include "weir/base/ip_address.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/http/proxy_header.hpp"
#include "weir/net/stream.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/acceptor.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/http2_settings.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/proxy/worker.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

class AskService;
class Exchange;
class Http2Connection;

class Session final : public ClientWatch {
 public:
  // After this number of requests, or after working on requests for kWorkInTurn, a connection yields to other
  // connections.
  static constexpr unsigned kRequestsInTurn = 16;
  static constexpr base::Duration kWorkInTurn{500};

  // `slot`: the entry of this connection in the count of its client address; empty if the connection is not
  // counted or not counted yet. `listener`: the settings of the listener, which may change later.
  // `acceptor_closed`: true once that listener is closed. `listener` and `acceptor_closed` must outlive the
  // session.
  Session(Worker& worker, net::Stream client, const net::RawEndpoint& peer, ConnectionsPerIp::Slot slot,
          const AcceptorSettings& listener, const bool& acceptor_closed);
  ~Session();

  // Must be called before run(). The session then expects a PROXY header first, takes the client's address
  // from it, and counts the connection for that address.
  void expect_proxy_header() noexcept { proxy_header_expected_ = true; }
  // Must be called before run(). Continues a connection that another process started to serve. `read`: the
  // octets that the other process has already read. REQUIRES that `read` fits into one block.
  void begin_with(const ConnectionInfo& connection_info, std::string_view read);

  // Performs the steps before the first request. Returns false if the connection must close. Must be called
  // once, before run().
  [[nodiscard]] net::Task<bool> begin();
  // Serves requests. Returns false once the connection has ended. Returns true if the connection has become
  // quiet, which means that it was idle for a second. The caller must then wait until the client is readable,
  // and call end_quiet(). Meanwhile no coroutine of the session takes memory.
  [[nodiscard]] net::Task<bool> run();
  // Must be called after the wait of a quiet connection. `ec`: the result of the wait. Returns true if the
  // connection continues; the caller must then call run() again.
  [[nodiscard]] bool end_quiet(net::ErrorCode ec);

  [[nodiscard]] bool has_disconnected() const noexcept override {
    const bool ends = half_close_ends_ || worker.config().server.half_close == HalfClose::End;
    return ends ? client.peer_left() : client.peer_broke();
  }
  // Returns true if the connection ends after the current request: if weir stops, if the listener has closed,
  // or if a process that will end soon relays the connection.
  [[nodiscard]] bool is_leaving() const noexcept { return is_draining() || relayed_ || last_; }
  // Returns true if another process takes over in an upgrade, and can get the client's socket. If
  // needs_relay() is also true, this process keeps the socket.
  [[nodiscard]] bool is_handed_off() const noexcept { return worker.handoff != nullptr && !client.is_tls(); }
  // Returns true if the new process of an upgrade serves the next request, but this process must relay the
  // bytes. Relaying is necessary with TLS, and if there are more unread bytes than weir can send along with a
  // socket.
  [[nodiscard]] bool needs_relay() const noexcept {
    return worker.handoff != nullptr && (client.is_tls() || inbox.unread().size() > kMostToMove);
  }
  // Returns true if the connection closes as soon as it is idle.
  [[nodiscard]] bool ends_idle() const noexcept {
    return is_draining() && !worker.retiring && !must_serve_request_;
  }
  // Returns true if the client uses TLS to this process, or to the process that relays the connection.
  [[nodiscard]] bool is_secure() const noexcept { return client.is_tls() || secure_; }
  // Returns the name of the listener, which may change whenever the session waits. Empty: the listener has no
  // name, or does not exist any more.
  [[nodiscard]] std::string_view listener_name() const noexcept {
    return last_ ? std::string_view() : std::string_view(listener_.name);
  }
  // Returns the client's verified certificate as a value of Client-Cert (RFC 9440). Empty: the client has
  // none. The result is valid as long as the session.
  [[nodiscard]] std::string_view certificate() {
    auto& certificate = peer.edit_details().certificate;
    if (!certificate) certificate = client.peer_certificate();
    return *certificate;
  }
  // Returns the settings with which the listener answers questions now; null: the listener proxies.
  [[nodiscard]] const std::shared_ptr<const AskSettings>& ask_settings() const noexcept {
    return listener_.ask;
  }
  // Returns why weir rejected the client's certificate. Empty if weir did not reject it.
  [[nodiscard]] std::string_view rejection_reason() const noexcept { return rejection_reason_; }
  // Returns the kind of HTTP/2 frames of which the client sent too many, as the metric names it. Empty if
  // there was no abuse.
  [[nodiscard]] std::string_view abuse() const noexcept { return abuse_; }
  // Returns the two ends of the connection as the client sees them, or nothing if the connection does not use
  // IP.
  [[nodiscard]] std::optional<http::ConnectionEnds> ends() const { return peer.ends(client.native_handle()); }

  // This function and the following functions are for Http2Connection. begin_idling() records that no request
  // is open, and arms [server] idle_timeout.
  void begin_idling() noexcept;
  // Records that a request is open.
  void note_busy() noexcept {
    disarm();
    state_ = State::Busy;
  }
  [[nodiscard]] bool is_idle() const noexcept { return state_ == State::Idle || state_ == State::Quiet; }
  // Returns true if the connection was idle for so long that it should release its buffers.
  [[nodiscard]] bool is_quiet() const noexcept;
  // Releases the buffer. Must be called before the wait of a quiet connection.
  void become_quiet();
  // Returns true if an HTTP/2 connection must end after its open requests. One possible reason is that the
  // listener has other certificates or settings now.
  [[nodiscard]] bool must_leave() const noexcept {
    return worker.draining || worker.retiring || worker.handoff != nullptr || acceptor_closed_ ||
           http2_settings_ != listener_.http2;
  }
  void disarm_deadline() noexcept { disarm(); }

  Worker& worker;
  net::Stream client;
  Inbox inbox;
  // The client's address: from the socket, or from the PROXY header of a trusted proxy.
  ClientPeer peer;

 private:
  // The largest number of unread octets that weir sends along with a socket to another process. This many
  // octets fit into one message and into the smallest inbox.
  static constexpr std::size_t kMostToMove = 32 << 10;

  // Quiet: the connection was idle for a second, and holds no buffer.
  enum class State : std::uint8_t { Busy, Begun, Idle, Quiet };

  void on_late() noexcept override;
  void on_tick() noexcept override;
  void cancel_all() noexcept;
  [[nodiscard]] bool makes_room() noexcept;
  [[nodiscard]] bool may_skip_ticks() const noexcept;
  void note_begun() noexcept;

  [[nodiscard]] bool is_draining() const noexcept {
    return (worker.draining || acceptor_closed_) && !is_handed_off();
  }
  [[nodiscard]] net::Task<bool> open();
  // Returns true if weir is handing over the state of the limiters in an upgrade, or if the new process
  // accepts connections.
  [[nodiscard]] bool is_upgrading() const noexcept {
    return worker.decision_pause.is_on() || worker.handoff != nullptr;
  }
  [[nodiscard]] net::Task<bool> hand_over();
  [[nodiscard]] net::Task<std::size_t> await_head();
  [[nodiscard]] bool outlasts(const net::ErrorCode& ec) const noexcept;
  void end() noexcept;
  [[nodiscard]] net::ErrorCode receive();
  void begin_head() noexcept;
  void wait_for_the_rest() noexcept;
  void end_turn() noexcept {
    requests_in_turn_ = 0;
    work_in_turn_ = {};
  }
  [[nodiscard]] net::Task<void> wait_out_pause();
  [[nodiscard]] ConnectionInfo connection_info() const;
  [[nodiscard]] bool hand_off();
  [[nodiscard]] net::Task<bool> relay_to_successor();
  [[nodiscard]] net::Task<bool> serve_one(std::size_t head_size);
  [[nodiscard]] net::Task<bool> end_request(Http1Stream& stream, Http1Stream::Next next);
  [[nodiscard]] net::Task<void> refuse_head(http::Fault fault, std::string_view bytes);
  [[nodiscard]] net::Task<bool> drop_rest(BodySource& body);
  [[nodiscard]] net::Task<void> linger();
  [[nodiscard]] net::Task<void> serve_http2();

  const AcceptorSettings& listener_;
  const bool& acceptor_closed_;
  Exchange* exchange_ = nullptr;                   // the current exchange
  AskService* ask_ = nullptr;                      // the current call of an asker
  Http2Connection* http2_ = nullptr;               // set while the connection speaks HTTP/2
  DecisionPause::Waiter* pause_waiter_ = nullptr;  // set while the session waits for the end of the pause
  net::Stream* relay_target_ = nullptr;  // to the process that serves the relayed client; null: no relay
  std::string_view rejection_reason_;    // why weir rejected the client's certificate; static text
  std::string_view abuse_;         // the kind of HTTP/2 frames of which the client sent too many; static text
  std::uint32_t idle_ticks_ = 0;   // ticks since the session became idle
  std::uint32_t begun_ticks_ = 0;  // ticks in State::Begun
  unsigned requests_in_turn_ = 0;  // requests served since the last wait for the client
  State state_ = State::Busy;
  ConnectionsPerIp::Slot slot_;
  std::shared_ptr<const Http2Settings> http2_settings_;
  std::size_t uncounted_ = 0;  // octets received while may_be_http2_ is true; not in bytes_in yet
  bool may_be_http2_ = false;  // the first octets may be the HTTP/2 preface (RFC 9113 §3.4)
  bool proxy_header_expected_ = false;
  bool relayed_ = false;  // the peer is a weir process that relays the client's connection
  bool secure_ = false;   // the relaying process received the connection over TLS
  bool last_ = false;     // the listener does not exist any more
  // True: another process received the first bytes of a request, which this session must serve.
  bool must_serve_request_ = false;
  bool lingers_ = false;  // the last answer was sent, but the client may still send
  bool evicted_ = false;  // the connection was evicted to make room
};

// Counts a connection of this address in `slot` if [server] max_connections_per_ip is set. Does not count
// trusted proxies. If the address has reached the bound, returns false and counts the rejection.
[[nodiscard]] bool count_connection(Worker& worker, const base::IpAddress& address,
                                    ConnectionsPerIp::Slot& slot);

}  // namespace weir::proxy
