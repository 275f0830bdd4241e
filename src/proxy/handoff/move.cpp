// The part of a session whose next request another process serves, which has taken over.
//
// A plain connection goes over itself. TLS cannot: its keys stay here. So from its next request on what comes
// is deciphered here, and passed on over a pair of sockets; the other process decides and answers, and closes
// with its answer, so that the client comes back to that process. So it is with a plain one of which more was
// read than goes with it.
#include "proxy/client/session.hpp"
#include "proxy/exchange/in_hand.hpp"
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

Introduction Session::introduction() const {
  return {.ends = told_ends_,
          .certificate_subject = certificate_subject_,
          .relayed = relayed_,
          .secure = secure_};
}

void Session::begin_with(const Introduction& introduction, std::string_view read) {
  preamble_expected_ = false;
  relayed_ = introduction.relayed;
  secure_ = introduction.secure;
  last_ = introduction.last;
  owed_ = relayed_ || !read.empty();
  certificate_subject_ = introduction.certificate_subject;
  if (introduction.ends) believe(*introduction.ends);
  if (read.empty()) return;
  std::copy(read.begin(), read.end(), inbox.space());
  inbox.received(read.size());
}

// The socket goes over with what was read of it; here it is only closed. Where that is too much for a
// message, it is relayed.
bool Session::move_on() {
  if (is_to_be_relayed()) return false;
  const auto passed = worker.passage->take(client.native_handle(), listener_, introduction(), inbox.unread());
  if (passed == Passed::Gone) worker.passage = nullptr;
  if (passed == Passed::Yes) client.close();
  return passed == Passed::Yes;
}

// False: it is served here, for want of descriptors or of somebody who takes it.
net::Task<bool> Session::relay_on() {
  auto told = introduction();
  told.relayed = true;
  told.secure = is_secure();
  if (!told.ends) told.ends = ends();
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) co_return false;
  net::Stream other(worker.executor, pair[0]);
  const auto passed = worker.passage->take(pair[1], listener_, told, {});
  ::close(pair[1]);
  if (passed == Passed::Gone) worker.passage = nullptr;
  if (passed != Passed::Yes) co_return false;
  disarm();
  late_ = false;
  state_ = State::Busy;
  Inbox answer(worker.blocks);
  Tunnel tunnel(*this, other, answer, kUnbounded, nullptr);
  tunnel.linger_for(kLinger);
  const InHand in_hand(onward_, other);
  (void)co_await tunnel.run();
  co_return true;
}

}  // namespace weir::proxy
