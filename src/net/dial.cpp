#include "weir/net/dial.hpp"

#include <algorithm>
#include <cerrno>
#include <coroutine>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace weir::net {

namespace {

// Returns how long to wait for one address before the next address is tried as well: kHeadStart, or less if
// `patience` is short. So at least half of `patience` is left for the last address.
base::Duration share_of(base::Duration patience, std::size_t addresses) noexcept {
  const auto shares = 2 * std::max<std::size_t>(addresses, 1);
  return std::min(Dial::kHeadStart, patience / static_cast<base::Duration::rep>(shares));
}

// Opens a socket for the address. Returns a negative value on error, with errno set.
int open_socket(const RawEndpoint& address) noexcept {
  const auto family = address.protocol().family();
  const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0 && family != AF_UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

// An awaitable: waits until a running attempt can continue, or until wake() is called.
class Dial::AnyOf : public Suspended {
 public:
  explicit AnyOf(Dial& dial) noexcept : dial_(dial) {}
  ~AnyOf() {
    if (dial_.waiting_ == this) dial_.waiting_ = nullptr;
    for (auto& one : dial_.tries_) one.wait.reset();
  }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) noexcept {
    frame_ = caller;
    dial_.waiting_ = this;
    for (auto& one : dial_.tries_) {
      if (!one.stream) continue;
      one.wait.emplace(Readiness{one});
      // If the socket is already ready, the attempt continues in the next turn of the event loop.
      if (one.wait->await_ready()) return dial_.wake();
      one.wait->await_suspend(caller);
    }
  }
  void await_resume() const noexcept {}

 private:
  // Converts to a Wait. A Wait cannot be moved, so emplace() constructs it in place through this conversion.
  struct Readiness {
    const Try& one;
    operator Port::Wait() const noexcept { return one.readiness(); }
  };
  Dial& dial_;
};

Dial::Dial(const Executor& executor, Watchdog& watchdog, const Target& target, base::Duration patience)
    : Watched(watchdog),
      executor_(executor),
      reactor_(Reactor::of(executor)),
      target_(target),
      head_start_(share_of(patience, target.addresses.size())),
      address_(target.first) {}

void Dial::wake() noexcept {
  if (waiting_ != nullptr) reactor_.resume_soon(*std::exchange(waiting_, nullptr));
}

void Dial::cancel() noexcept {
  cancelled_ = true;
  wake();
}

void Dial::on_late() noexcept {
  due_ = true;
  wake();
}

std::size_t Dial::next() const noexcept {
  const auto count = target_.addresses.size();
  return begun_ > 1 && begun_ < count && !has_connected_ ? (target_.first + begun_) % count : address_;
}

Task<ErrorCode> Dial::connect() {
  while (!cancelled_) {
    if (can_begin()) begin();
    if (advance()) co_return ErrorCode{};
    if (can_begin()) continue;
    if (!is_any_under_way()) co_return failure_;
    co_await AnyOf(*this);
  }
  co_return asio::error::operation_aborted;
}

// Returns the Try object for the next attempt. Prefers an unused object. Otherwise returns the object of the
// oldest attempt that still waits for its connection; the next attempt replaces it. Returns null if all
// attempts are in the TLS handshake.
Dial::Try* Dial::place() noexcept {
  Try* best = nullptr;
  for (auto& one : tries_) {
    if (!one.stream) return &one;
    if (!one.shaking && (best == nullptr || one.number < best->number)) best = &one;
  }
  return best;
}

bool Dial::can_begin() noexcept {
  return due_ && begun_ < target_.addresses.size() && place() != nullptr;
}

void Dial::begin() {
  due_ = false;
  auto& one = *place();
  one.stream.reset();
  one.number = begun_++;
  one.shaking = false;
  one.wants_room = true;
  const auto& address = target_.addresses[address_of(one)];
  const int fd = open_socket(address);
  // Gives the address up: the process has no free descriptor, or this host does not support the address
  // family.
  if (fd < 0) return drop(one, {errno, boost::system::system_category()});
  Stream stream = target_.tls ? Stream(executor_, fd, *target_.tls) : Stream(executor_, fd);  // owns fd
  one.stream = std::make_unique<Stream>(std::move(stream));
  const auto ec = one.stream->begin_connect(address.data(), address.size());
  if (ec && ec != asio::error::in_progress) return drop(one, ec);
  // The next address is tried after the head start. A watchdog deadline fires up to two ticks late. One tick
  // less makes the attempt at most one tick early or late, which matters if `patience` is short.
  if (begun_ < target_.addresses.size()) arm(std::max(base::Duration::zero(), head_start_ - Watchdog::kTick));
}

// Returns the result of the attempt's wait; would_block if the attempt must wait longer. Makes a temporary
// Wait to find the result, because a stored Wait could outlive its stream.
ErrorCode Dial::outcome_of(const Try& one) noexcept {
  const auto ready = one.readiness();
  return ready.await_ready() ? ready.await_resume() : ErrorCode(asio::error::would_block);
}

// Advances all attempts. Returns true if one of them has succeeded.
bool Dial::advance() {
  for (auto& one : tries_) {
    if (!one.stream) continue;
    auto ec = outcome_of(one);
    if (!ec) ec = step(one);
    if (!ec) {
      address_ = address_of(one);
      has_connected_ = true;
      made_ = std::move(one.stream);
      return true;
    }
    if (ec != asio::error::would_block && ec != asio::error::in_progress) drop(one, ec);
  }
  return false;
}

ErrorCode Dial::step(Try& one) {
  ErrorCode ec;
  if (!one.shaking) {
    ec = one.stream->end_connect();
    if (!ec && !target_.proxy_header.empty()) ec = one.stream->send_ahead(target_.proxy_header);
    if (ec || !target_.tls) return ec;
    one.shaking = true;
  }
  ec = one.stream->try_handshake(one.wants_room);
  if (ec && ec != asio::error::would_block && ec != asio::error::in_progress)
    fault_ = "its TLS handshake failed: " + one.stream->handshake_fault(ec);
  return ec;
}

void Dial::drop(Try& one, const ErrorCode& why) noexcept {
  one.stream.reset();
  failure_ = why;
  due_ = true;
}

bool Dial::is_any_under_way() const noexcept {
  return std::any_of(tries_.begin(), tries_.end(), [](const Try& one) { return one.stream != nullptr; });
}

std::size_t Dial::address_of(const Try& one) const noexcept {
  return (target_.first + one.number) % target_.addresses.size();
}

}  // namespace weir::net
