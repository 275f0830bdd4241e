// A connection of weir's own making, to a server that may have several addresses.
//
// They are tried in turn, but a silent one holds up the next for a moment alone: then both are under way, and
// the first that stands is the connection (RFC 8305 §5, with TLS as a part of standing). One that fails makes
// way at once.
//
// Belongs to the worker that waits for it.
#pragma once

#include "weir/net/listener.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/watchdog.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::net {

class Dial final : Watched {
 public:
  // Whom to connect, and how. What it refers to outlives the Dial.
  struct Target {
    const std::vector<RawEndpoint>& addresses;  // empty: connect() fails at once (host_unreachable)
    std::size_t first = 0;                      // of them, to begin with
    std::string_view preamble{};                // what stands ahead of all, TLS too
    std::optional<TlsTarget> tls{};
  };
  // So many addresses are under way at once; where more are silent the oldest makes way, but for those with
  // which TLS is being spoken.
  static constexpr std::size_t kAbreast = 4;
  // The longest that the next address waits for one that is silent.
  static constexpr base::Duration kHeadStart{250'000};

  // `patience`: how long whoever waits will wait, which is theirs to see to; addresses share it.
  Dial(const Executor& executor, Watchdog& watchdog, const Target& target, base::Duration patience);

  // Once. An error is that of the address that failed last; operation_aborted: cancel() was called.
  [[nodiscard]] Task<ErrorCode> connect();
  void cancel() noexcept;

  // Lets another hand cancel it: `hand` points at the Dial for as long as this lives.
  class InHand {
   public:
    InHand(Dial*& hand, Dial& dial) noexcept : hand_(hand) { hand_ = &dial; }
    ~InHand() { hand_ = nullptr; }
    InHand(const InHand&) = delete;
    InHand& operator=(const InHand&) = delete;

   private:
    Dial*& hand_;
  };

  // The connection that stands, after connect(), and the number of its address.
  [[nodiscard]] std::unique_ptr<Stream> take() noexcept { return std::move(made_); }
  [[nodiscard]] std::size_t address() const noexcept { return address_; }
  // With which address to begin the next time: the one that stood. Where none did, and time ran out before
  // all had begun, with the first of the others.
  [[nodiscard]] std::size_t next() const noexcept;
  // Where a TLS handshake failed, why: of the last. Else empty.
  [[nodiscard]] std::string& fault() noexcept { return fault_; }

 private:
  class AnyOf;
  struct Try {
    std::unique_ptr<Stream> stream;  // null: nothing is under way here
    std::size_t number = 0;          // the how many-th to begin
    bool shaking = false;            // connected, and TLS is under way
    bool wants_room = true;          // it waits until it is writable, else readable
    std::optional<Port::Wait> wait;

    [[nodiscard]] Port::Wait readiness() const noexcept {
      return wants_room ? stream->wait_writable() : stream->wait_readable();
    }
  };

  void on_late() noexcept override;
  void wake() noexcept;
  [[nodiscard]] std::size_t address_of(const Try& one) const noexcept;
  [[nodiscard]] Try* place() noexcept;
  [[nodiscard]] bool can_begin() noexcept;
  void begin();
  [[nodiscard]] static ErrorCode outcome_of(const Try& one) noexcept;
  [[nodiscard]] bool advance();
  [[nodiscard]] ErrorCode step(Try& one);
  void drop(Try& one, const ErrorCode& why) noexcept;
  [[nodiscard]] bool is_any_under_way() const noexcept;

  const Executor executor_;
  Reactor& reactor_;
  const Target target_;
  const base::Duration head_start_;
  std::array<Try, kAbreast> tries_;
  std::size_t begun_ = 0;
  bool due_ = true;  // the next address
  bool cancelled_ = false;
  Suspended* waiting_ = nullptr;  // for any of them, or a word
  ErrorCode failure_ = asio::error::host_unreachable;
  std::unique_ptr<Stream> made_;
  std::size_t address_;
  bool stood_ = false;
  std::string fault_;
};

}  // namespace weir::net
