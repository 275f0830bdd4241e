// The part of Session that hands a connection to the new process in an upgrade. The new process serves the
// next request. Until the new process has the state of the limiters, the connection waits.
//
// A plain connection is passed as a descriptor. A TLS connection cannot be passed, because its keys stay in
// this process. From the next request on, this process decrypts the bytes of such a connection and relays
// them over a socket pair. The new process decides and answers. The new process closes the connection after
// its first answer, so that the client reconnects to the new process. A plain connection is also relayed if
// more bytes were read than one handoff message can carry.
#include "proxy/client/session.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/upstream/tunnel.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace weir::proxy {

namespace {

// The deadline of a relay: in effect none. The new process enforces the deadlines of the requests that it
// serves, and the drain of this process ends the relay at the latest.
constexpr base::Duration kUnbounded = std::chrono::hours(24 * 365);
// How long the client may still send after the new process has sent the last answer and closed its side.
constexpr base::Duration kLinger{5'000'000};

}  // namespace

ConnectionInfo Session::connection_info() const {
  const auto& details = peer.details();
  return {.ends = details.reported_ends,
          .certificate_subject = details.certificate_subject,
          .certificate = details.certificate.value_or(""),
          .relayed = relayed_,
          .secure = secure_};
}

void Session::begin_with(const ConnectionInfo& connection_info, std::string_view read) {
  proxy_header_expected_ = false;
  relayed_ = connection_info.relayed;
  secure_ = connection_info.secure;
  last_ = connection_info.last;
  must_serve_request_ = relayed_ || !read.empty();
  if (!connection_info.certificate_subject.empty())
    peer.edit_details().certificate_subject = connection_info.certificate_subject;
  if (relayed_) peer.edit_details().certificate = connection_info.certificate;
  if (connection_info.ends) peer.use_reported(*connection_info.ends);
  if (read.empty()) return;
  std::copy(read.begin(), read.end(), inbox.space());
  inbox.received(read.size());
}

// Waits while the state of the limiters is handed over. If the new process accepts connections, hands the
// connection to it. Returns true if this process must not serve the connection any more.
net::Task<bool> Session::hand_over() {
  if (worker.decision_pause.is_on()) {
    co_await wait_out_pause();
    if (late_) co_return true;
  }
  if (is_handed_off() && hand_off()) co_return true;
  if (inbox.empty() || !needs_relay()) co_return false;
  co_return co_await relay_to_successor();
}

// Waits until the state of the limiters has been handed over. If octets of a request have already arrived,
// the wait does not count towards the head timeout or the idle timeout.
net::Task<void> Session::wait_out_pause() {
  const bool asks = !inbox.empty();
  if (asks) {
    disarm();
    state_ = State::Busy;
  }
  while (worker.decision_pause.is_on() && !late_) {
    DecisionPause::Waiter waiter(worker.decision_pause, worker.executor);
    pause_waiter_ = &waiter;
    co_await waiter.wait();
    pause_waiter_ = nullptr;
  }
  if (!asks) co_return;
  note_begun();
  arm(worker.config().server.head_timeout);
}

// Passes the socket with the bytes that were read, and closes the connection in this process. Returns false
// if the connection must be relayed, or if the new process did not take it.
bool Session::hand_off() {
  if (needs_relay()) return false;
  const auto passed =
      worker.handoff->take(client.native_handle(), listener_.listener, connection_info(), inbox.unread());
  if (passed == HandoffResult::Gone) worker.handoff = nullptr;
  if (passed == HandoffResult::Yes) client.close();
  return passed == HandoffResult::Yes;
}

// Relays the connection to the new process until it ends. Returns false if no descriptor is free or the new
// process does not take the connection. In that case this process serves the request.
net::Task<bool> Session::relay_to_successor() {
  auto info = connection_info();
  info.relayed = true;
  info.secure = is_secure();
  info.certificate = certificate();
  if (!info.ends) info.ends = ends();
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) co_return false;
  net::Stream other(worker.executor, pair[0]);
  const auto passed = worker.handoff->take(pair[1], listener_.listener, info, {});
  ::close(pair[1]);
  if (passed == HandoffResult::Gone) worker.handoff = nullptr;
  if (passed != HandoffResult::Yes) co_return false;
  disarm();
  late_ = false;
  state_ = State::Busy;
  Inbox answer(worker.blocks);
  Tunnel tunnel(worker, *this, client, inbox, other, answer, kUnbounded, nullptr);
  tunnel.linger_for(kLinger);
  const ScopedCancelTarget cancel_target(relay_target_, other);
  (void)co_await tunnel.run();
  co_return true;
}

}  // namespace weir::proxy
