// One client connection, from its acceptance to its end: TLS, the loop over requests, deadlines, the drain.
#pragma once

#include "proxy/client/client_peer.hpp"
#include "proxy/client/client_watch.hpp"

#include "weir/base/ip_address.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/http/proxy_header.hpp"
#include "weir/net/stream.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/proxy/worker.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

class Exchange;

class Session final : public ClientWatch {
 public:
  // `slot`: of its address among others; empty where those are not counted, or not yet. `listener`, as
  // configured, and `acceptor_closed`: that it came by, which outlives it.
  Session(Worker& worker, net::Stream client, const net::RawEndpoint& peer, ConnectionsPerIp::Slot slot,
          const std::string& listener, const bool& acceptor_closed);
  ~Session();

  // Before run(): the client's address, and its place, are those of which a proxy tells first.
  void expect_proxy_header() noexcept { proxy_header_expected_ = true; }
  // Before run(): another process has begun to serve it, and read of it. REQUIRES that a block holds that.
  void begin_with(const ConnectionInfo& connection_info, std::string_view read);

  // Serves requests until either side ends it.
  [[nodiscard]] net::Task<void> run();

  [[nodiscard]] bool has_gone() const noexcept override {
    const bool ends = half_close_ends_ || worker.config().server.half_close == HalfClose::End;
    return ends ? client.peer_left() : client.peer_broke();
  }
  // It serves no request after the one under way: weir stops, does not listen there any more, or has it by
  // way of another process, which is to end.
  [[nodiscard]] bool is_leaving() const noexcept { return loses_its_place() || relayed_ || last_; }
  // Another process serves its next request, and it goes there itself.
  [[nodiscard]] bool is_handed_off() const noexcept { return worker.handoff != nullptr && !client.is_tls(); }
  // Likewise, and its bytes go there: of TLS, or because more of them are here than go with a socket.
  [[nodiscard]] bool needs_relay() const noexcept {
    return worker.handoff != nullptr && (client.is_tls() || inbox.unread().size() > kMostToMove);
  }
  // It does not wait for a request either.
  [[nodiscard]] bool ends_idle() const noexcept { return loses_its_place() && !worker.retiring && !owed_; }
  // Its client speaks TLS, to this process or to the one that relays it.
  [[nodiscard]] bool is_secure() const noexcept { return client.is_tls() || secure_; }
  // Why it was not believed, so that there was no session; empty: it was.
  [[nodiscard]] std::string_view distrust() const noexcept { return distrust_; }
  // The two ends of the connection as the client sees them; nothing where it is none over IP.
  [[nodiscard]] std::optional<http::ConnectionEnds> ends() const { return peer.ends(client.native_handle()); }

  Worker& worker;
  net::Stream client;
  Inbox inbox;
  // The other end of the connection, or what a trusted proxy said of it before anything else.
  ClientPeer peer;

 private:
  // What was read of requests that another process is to serve fits into a message with its socket, and into
  // the smallest inbox.
  static constexpr std::size_t kMostToMove = 32 << 10;  // octets

  enum class State : std::uint8_t { Busy, Begun, Idle, Quiet };

  void on_late() noexcept override;
  void on_tick() noexcept override;
  void cancel_all() noexcept;
  [[nodiscard]] bool is_idle() const noexcept { return state_ == State::Idle || state_ == State::Quiet; }
  [[nodiscard]] bool makes_room() noexcept;
  [[nodiscard]] bool may_doze() const noexcept;
  void note_begun() noexcept;

  [[nodiscard]] bool loses_its_place() const noexcept {
    return (worker.draining || acceptor_closed_) && !is_handed_off();
  }
  [[nodiscard]] net::Task<bool> open();
  // Limits are being handed over, or another process takes connections.
  [[nodiscard]] bool is_called_away() const noexcept {
    return worker.decision_pause.is_on() || worker.handoff != nullptr;
  }
  [[nodiscard]] net::Task<bool> hand_over();
  [[nodiscard]] net::Task<std::size_t> await_head();
  [[nodiscard]] net::Task<bool> outlast(net::ErrorCode ec);
  [[nodiscard]] net::ErrorCode receive();
  void begin_idling() noexcept;
  void begin_head() noexcept;
  [[nodiscard]] net::Port::Wait wait_in_quiet();
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
  [[nodiscard]] net::Task<void> refuse_head(http::Fault fault, std::string_view bytes);
  [[nodiscard]] net::Task<bool> drop_rest(BodySource& body);
  [[nodiscard]] net::Task<void> linger();

  const std::string& listener_;
  const bool& acceptor_closed_;
  Exchange* exchange_ = nullptr;                   // the one under way
  DecisionPause::Waiter* pause_waiter_ = nullptr;  // while it waits there
  net::Stream* onward_ = nullptr;                  // to the process that serves it, while it is relayed
  State state_ = State::Busy;
  std::string_view distrust_;  // static text
  std::uint32_t idle_ticks_ = 0;
  std::uint32_t begun_ticks_ = 0;
  unsigned requests_in_turn_ = 0;  // served since it last had to wait for the client
  ConnectionsPerIp::Slot slot_;
  bool proxy_header_expected_ = false;
  bool relayed_ = false;  // its other end is a process that has the client's
  bool secure_ = false;   // likewise, by TLS
  bool last_ = false;     // its listener is gone
  bool owed_ = false;     // another process has heard of a request that it has not answered
  bool lingers_ = false;  // has its last answer, and may still send
  bool evicted_ = false;  // to make room
};

// Takes a place for a connection of this address, where those are counted. False, and counted: there is none.
[[nodiscard]] bool count_connection(Worker& worker, const base::IpAddress& address,
                                    ConnectionsPerIp::Slot& slot);

}  // namespace weir::proxy
