// A connection that has changed its protocol: bytes go both ways as they come, whatever they mean. A side
// that does not take what it is sent stops the reading from the other (back-pressure); one that ends its
// sending has that passed on, and still gets what the other sends.
//
// Of a WebSocket whose messages some rule counts the frames are told apart on their way: so a message that is
// one too many can be held back, and a Close frame of our own be sent between two frames.
//
// Part of one exchange: two coroutines, one a way, of which run() waits for both.
#pragma once

#include "proxy/client/client_watch.hpp"
#include "proxy/exchange/message_limits.hpp"

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
  // `inbox`: what has come of `client`, behind a pinned head. `early`: what the server sent behind its 101.
  // `idle`: how long there may be no byte either way; a side that takes nothing gains no time by sending.
  // `limits`: of a WebSocket whose messages are counted; null: frames are not looked at.
  Tunnel(Worker& worker, ClientWatch& watch, net::Stream& client, Inbox& inbox, net::Stream& server,
         Inbox& early, base::Duration idle, MessageLimits* limits);
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  // Before run(): how long the client may go on once the server has ended its sending, if not as long as
  // `idle`.
  void linger_for(base::Duration time) noexcept { linger_ = time; }

  // Until both sides have ended their sending, or anything else ends it.
  [[nodiscard]] net::Task<observe::TunnelEnd> run();

  // Ends a wait for a message's turn; whoever calls has said why to the session.
  void cancel() noexcept { pause_.cancel(); }

  // Bytes that went to the server, and to the client.
  [[nodiscard]] std::uint64_t bytes_up() const noexcept { return up_.bytes; }
  [[nodiscard]] std::uint64_t bytes_down() const noexcept { return down_.bytes; }

 private:
  struct Way {
    net::Stream& from;
    net::Stream& to;
    Inbox& inbox;
    bool pinned = false;  // the head of the request stands in its inbox
    std::optional<http::FrameScanner> scanner{};
    bool begun = false;     // `to` has not taken all of the octets that it was sent last
    bool stuck = false;     // `to` takes no more at present, or a message waits for its turn
    bool ended = false;     // `from` sends no more
    std::size_t ready = 0;  // octets at the front of the inbox that may go on
    std::size_t held = 0;   // behind them, the header of a message that waits
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] net::Task<void> pump(Way& way);
  void pass_end(Way& way);
  [[nodiscard]] net::Task<net::ErrorCode> await(Way& way, bool reading);
  void scan(Way& way);
  [[nodiscard]] bool pass(Way& way, const http::FrameScanner::Piece& piece);
  [[nodiscard]] net::Task<void> hold(Way& way);
  void refuse(std::uint16_t code);
  [[nodiscard]] bool at_boundary(const Way& way) const noexcept;
  void say_close(Way& way, std::uint16_t code);
  [[nodiscard]] net::ErrorCode receive(Way& way);
  [[nodiscard]] net::ErrorCode send(Way& way);
  void moved() noexcept;
  void rest(Way& way);
  void stop(observe::TunnelEnd end) noexcept;
  [[nodiscard]] observe::TunnelEnd broken(const Way& way, bool reading) const noexcept;

  Worker& worker_;
  ClientWatch& watch_;
  base::Duration idle_;
  base::Duration linger_;
  Way up_;
  Way down_;
  MessageLimits* const limits_;
  base::Duration wait_{0};      // of the message that is held back
  std::uint16_t refusal_ = 0;   // the status to close with, once what is ready has gone up
  std::uint16_t farewell_ = 0;  // that status, once the server has been told
  net::Timer pause_;
  net::Signal finished_;  // the way up
  bool over_ = false;
  observe::TunnelEnd end_ = observe::TunnelEnd::Closed;
  std::exception_ptr thrown_;
};

}  // namespace weir::proxy
