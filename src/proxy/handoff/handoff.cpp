// The part of a session whose next request another process serves, which has taken over.
//
// A plain connection goes over itself. TLS cannot: its keys stay here. So from its next request on what comes
// is deciphered here, and passed on over a pair of sockets; the other process decides and answers, and closes
// with its answer, so that the client comes back to that process. So it is with a plain one of which more was
// read than goes with it.
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

// The other process keeps the deadlines of what it serves; the drain bounds it here.
constexpr base::Duration kUnbounded = std::chrono::hours(24 * 365);
// How long a client may still send that has been answered for the last time.
constexpr base::Duration kLinger{5'000'000};

}  // namespace

ConnectionInfo Session::connection_info() const {
  return {.ends = peer.told,
          .certificate_subject = peer.certificate_subject,
          .relayed = relayed_,
          .secure = secure_};
}

void Session::begin_with(const ConnectionInfo& connection_info, std::string_view read) {
  proxy_header_expected_ = false;
  relayed_ = connection_info.relayed;
  secure_ = connection_info.secure;
  last_ = connection_info.last;
  owed_ = relayed_ || !read.empty();
  peer.certificate_subject = connection_info.certificate_subject;
  if (connection_info.ends) peer.believe(*connection_info.ends);
  if (read.empty()) return;
  std::copy(read.begin(), read.end(), inbox.space());
  inbox.received(read.size());
}

// The socket goes over with what was read of it; here it is only closed. Where that is too much for a
// message, it is relayed.
bool Session::hand_off() {
  if (needs_relay()) return false;
  const auto passed =
      worker.handoff->take(client.native_handle(), listener_, connection_info(), inbox.unread());
  if (passed == HandoffResult::Gone) worker.handoff = nullptr;
  if (passed == HandoffResult::Yes) client.close();
  return passed == HandoffResult::Yes;
}

// False: it is served here, for want of descriptors or of somebody who takes it.
net::Task<bool> Session::relay_to_successor() {
  auto told = connection_info();
  told.relayed = true;
  told.secure = is_secure();
  if (!told.ends) told.ends = ends();
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) co_return false;
  net::Stream other(worker.executor, pair[0]);
  const auto passed = worker.handoff->take(pair[1], listener_, told, {});
  ::close(pair[1]);
  if (passed == HandoffResult::Gone) worker.handoff = nullptr;
  if (passed != HandoffResult::Yes) co_return false;
  disarm();
  late_ = false;
  state_ = State::Busy;
  Inbox answer(worker.blocks);
  Tunnel tunnel(worker, *this, client, inbox, other, answer, kUnbounded, nullptr);
  tunnel.linger_for(kLinger);
  const ScopedCancelTarget cancel_target(onward_, other);
  (void)co_await tunnel.run();
  co_return true;
}

}  // namespace weir::proxy
