// A connection that has changed its protocol: bytes go both ways as they come, whatever they mean. A side
// that does not take what it is sent stops the reading from the other (back-pressure); one that ends its
// sending has that passed on, and still gets what the other sends.
//
// Part of one exchange: two coroutines, one a way, of which run() waits for both.
#pragma once

#include "proxy/session.hpp"

#include "weir/net/signal.hpp"
#include "weir/observe/counters.hpp"

#include <cstdint>
#include <exception>

namespace weir::proxy {

class Tunnel {
 public:
  // `early`: what the server sent behind its 101. `idle`: how long there may be no byte either way; a side
  // that takes nothing gains no time by sending.
  Tunnel(Session& session, net::Stream& server, Inbox& early, base::Duration idle);
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  // Until both sides have ended their sending, or anything else ends it.
  [[nodiscard]] net::Task<observe::TunnelEnd> run();

  // Bytes that went to the server, and to the client.
  [[nodiscard]] std::uint64_t bytes_up() const noexcept { return up_.bytes; }
  [[nodiscard]] std::uint64_t bytes_down() const noexcept { return down_.bytes; }

 private:
  struct Way {
    net::Stream& from;
    net::Stream& to;
    Inbox& inbox;
    bool pinned = false;  // the head of the request stands in its inbox
    bool stuck = false;   // `to` takes no more at present
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] net::Task<void> pump(Way& way);
  [[nodiscard]] net::ErrorCode receive(Way& way);
  [[nodiscard]] net::ErrorCode send(Way& way);
  void moved() noexcept;
  void rest(Way& way);
  void stop(observe::TunnelEnd end) noexcept;
  [[nodiscard]] observe::TunnelEnd broken(const Way& way, bool reading) const noexcept;

  Session& session_;
  const base::Duration idle_;
  Way up_;
  Way down_;
  net::Signal finished_;  // the way up
  bool over_ = false;
  observe::TunnelEnd end_ = observe::TunnelEnd::Closed;
  std::exception_ptr thrown_;
};

}  // namespace weir::proxy
