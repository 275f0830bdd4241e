// A connection after a protocol upgrade, or a WebSocket of an HTTP/2 client: relays bytes both ways without
// interpreting them. If one side accepts no more bytes, weir stops reading from the other side
// (back-pressure). If one peer closes its sending side, weir closes its own sending side towards the other
// peer. The other peer can still send.
//
// If a rule limits WebSocket messages, the tunnel also parses the frames. It can then delay a message that
// exceeds the limit, or send a Close frame of its own between two frames. If a rule has a bandwidth, each
// direction waits until weir may forward its next octets.
//
// A tunnel is part of one exchange. Two coroutines run, one for each direction, and run() waits for both.
#pragma once

#include "proxy/client/client_watch.hpp"
#include "proxy/exchange/message_limits.hpp"
#include "proxy/pacing/pacing.hpp"

#include "weir/http/frame_scanner.hpp"
#include "weir/net/signal.hpp"
#include "weir/net/stream.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/worker.hpp"

#include <cstdint>
#include <exception>
#include <optional>

namespace weir::proxy {

class Tunnel {
 public:
  // `inbox`: octets received from `client`. The request's head may precede them, and is not forwarded.
  // `early`: octets that the server sent after its 101. `idle`: the tunnel ends if no octet moves in either
  // direction for this long. While one side accepts nothing, octets from that side do not count. `limits`:
  // the message limits of a WebSocket; null: frames are not parsed.
  Tunnel(Worker& worker, ClientWatch& watch, net::DuplexStream& client, Inbox& inbox,
         net::DuplexStream& server, Inbox& early, base::Duration idle, MessageLimits* limits);
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  // Must be called before run(). Paces both directions. `pacing` must outlive the tunnel.
  void pace(Pacing& pacing) noexcept {
    up_.pace = &pacing.to_server();
    down_.pace = &pacing.to_client();
  }
  // Must be called before run(). Sets how long the client may continue after the server has closed its
  // sending side. The default is `idle`.
  void linger_for(base::Duration time) noexcept { linger_ = time; }

  // Relays until both sides have closed their sending sides, or until a timeout, an error or a refusal.
  [[nodiscard]] net::Task<observe::TunnelEnd> run();

  // Ends the delay of a message, and the waits of the pacer. The caller must first record the reason in the
  // ClientWatch.
  void cancel() noexcept;

  // Return the numbers of bytes sent to the server and to the client.
  [[nodiscard]] std::uint64_t bytes_up() const noexcept { return up_.bytes; }
  [[nodiscard]] std::uint64_t bytes_down() const noexcept { return down_.bytes; }

 private:
  struct Direction {
    net::DuplexStream& from;
    net::DuplexStream& to;
    Inbox& inbox;
    std::optional<http::FrameScanner> scanner{};
    PaceGate* pace = nullptr;  // null: nothing paces this direction
    bool begun = false;        // `to` has accepted only a part of the last octets
    bool stuck = false;        // `to` accepts no more octets at the moment, or a message is delayed
    bool ended = false;        // `from` closed its sending side
    std::size_t ready = 0;     // octets at the front of the inbox that may be sent
    std::size_t held = 0;      // octets after the ready octets: the header of a delayed message
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] net::Task<void> pump(Direction& direction);
  [[nodiscard]] net::Task<void> pass_end(Direction& direction);
  [[nodiscard]] net::Task<net::ErrorCode> await(Direction& direction, bool reading);
  void scan(Direction& direction);
  [[nodiscard]] bool pass(Direction& direction, const http::FrameScanner::Piece& piece);
  [[nodiscard]] net::Task<void> hold(Direction& direction);
  [[nodiscard]] net::Task<void> wait_for_pace(Direction& direction);
  void refuse(std::uint16_t code);
  [[nodiscard]] bool at_boundary(const Direction& direction) const noexcept;
  void send_close_frame(Direction& direction, std::uint16_t code);
  [[nodiscard]] net::ErrorCode receive(Direction& direction);
  [[nodiscard]] net::ErrorCode send(Direction& direction);
  void moved() noexcept;
  void rest(Direction& direction);
  void stop(observe::TunnelEnd end) noexcept;
  [[nodiscard]] observe::TunnelEnd broken(const Direction& direction, bool reading) const noexcept;

  Worker& worker_;
  ClientWatch& watch_;
  base::Duration idle_;
  base::Duration linger_;
  Direction up_;
  Direction down_;
  MessageLimits* const limits_;
  base::Duration wait_{0};  // the delay of the current message
  // Code of the Close frames to send once the server has all octets before the refused frame; 0: no refusal.
  std::uint16_t refusal_ = 0;
  std::uint16_t sent_close_code_ = 0;  // code of the Close frame sent to the server; 0: none so far
  net::Timer pause_;
  net::Signal finished_;  // raised when the direction to the server has ended
  bool over_ = false;
  observe::TunnelEnd end_ = observe::TunnelEnd::Closed;
  std::exception_ptr thrown_;
};

}  // namespace weir::proxy
