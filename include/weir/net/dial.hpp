// Dial opens an outgoing connection to a server that may have several addresses.
//
// Dial tries the addresses in turn. If an address stays silent, Dial soon starts the attempt at the next
// address, too. The first attempt that succeeds becomes the connection (RFC 8305 §5). With TLS, success
// includes the handshake. If an attempt fails, the next one starts at once.
//
// A Dial belongs to the worker whose coroutine awaits connect().
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
  // The server to connect to, and the options of the connection. The referenced objects must outlive the
  // Dial.
  struct Target {
    const std::vector<RawEndpoint>& addresses;  // empty: connect() fails at once (host_unreachable)
    std::size_t first = 0;                      // index of the address to begin with
    std::string_view proxy_header{};            // bytes to send before everything else, even before TLS
    std::optional<TlsTarget> tls{};
  };
  // The maximum number of attempts that run at the same time. If all of them are running, a new attempt
  // replaces the oldest attempt that has not begun its TLS handshake.
  static constexpr std::size_t kAbreast = 4;
  // The longest time that a silent address delays the attempt at the next address.
  static constexpr base::Duration kHeadStart{250'000};

  // `patience`: the caller's time limit. Dial divides this time among the addresses. Dial does not enforce
  // this limit; the caller must. `watchdog` must outlive the Dial.
  Dial(const Executor& executor, Watchdog& watchdog, const Target& target, base::Duration patience);

  // Opens the connection. Must be called once. Returns the error of the address that failed last, or
  // operation_aborted after cancel().
  [[nodiscard]] Task<ErrorCode> connect();
  void cancel() noexcept;

  // Lets other code cancel a Dial through the pointer `hand`. The constructor sets `hand` to the Dial, and
  // the destructor sets it to null.
  class ScopedCancelTarget {
   public:
    ScopedCancelTarget(Dial*& hand, Dial& dial) noexcept : hand_(hand) { hand_ = &dial; }
    ~ScopedCancelTarget() { hand_ = nullptr; }
    ScopedCancelTarget(const ScopedCancelTarget&) = delete;
    ScopedCancelTarget& operator=(const ScopedCancelTarget&) = delete;

   private:
    Dial*& hand_;
  };

  // take() returns the connection that connect() opened. address() returns the index of the address to which
  // the connection leads.
  [[nodiscard]] std::unique_ptr<Stream> take() noexcept { return std::move(made_); }
  [[nodiscard]] std::size_t address() const noexcept { return address_; }
  // Returns the index of the address with which the next Dial to the same server should begin:
  // * the address that connected, if any;
  // * the first address that was not tried, if none connected and at least two, but not all, were tried;
  // * otherwise Target::first.
  [[nodiscard]] std::size_t next() const noexcept;
  // Returns the reason of the most recent failed TLS handshake; empty if no handshake failed.
  [[nodiscard]] std::string& fault() noexcept { return fault_; }

 private:
  class AnyOf;
  struct Try {
    std::unique_ptr<Stream> stream;  // null: no attempt uses this Try
    std::size_t number = 0;          // sequence number of the attempt, from 0
    bool shaking = false;            // true: the TLS handshake is running
    // True: the attempt waits until its socket is writable. False: the attempt waits until its socket is
    // readable.
    bool wants_room = true;
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
  bool due_ = true;  // true: the attempt for the next address should start now
  bool cancelled_ = false;
  Suspended* waiting_ = nullptr;  // the coroutine that waits for any attempt or for wake()
  ErrorCode failure_ = asio::error::host_unreachable;
  std::unique_ptr<Stream> made_;
  std::size_t address_;         // index of the address that connected; until then, of the first address
  bool has_connected_ = false;  // true: an attempt has succeeded
  std::string fault_;
};

}  // namespace weir::net
