// The part of a session whose next request another process serves, which has taken over.
//
// A plain connection goes over itself. TLS cannot: its keys stay here. So from its next request on what comes
// is deciphered here, and passed on over a pair of sockets; the other process decides and answers, and closes
// with its answer, so that the client comes back to that process.
#include "proxy/session.hpp"
#include "proxy/tunnel.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace weir::proxy {

namespace {

// What was read of requests that another process is to serve fits into a message with its socket, and into
// the smallest inbox.
constexpr std::size_t kMostToMove = 32 << 10;
// The other process keeps the deadlines of what it serves; the drain bounds it here.
constexpr base::Duration kUnbounded = std::chrono::hours(24 * 365);
// How long a client may still send that has been answered for the last time.
constexpr base::Duration kLinger{5'000'000};

}  // namespace

Introduction Session::introduction() const {
  Introduction told{.ends = told_ends_, .certificate_subject = certificate_subject_, .relayed = relayed_};
  if (!client.is_tls()) return told;
  told.relayed = true;
  if (!told.ends) told.ends = ends();
  return told;
}

void Session::begin_with(const Introduction& introduction, std::string_view read) {
  preamble_expected_ = false;
  relayed_ = introduction.relayed;
  certificate_subject_ = introduction.certificate_subject;
  if (introduction.ends) believe(*introduction.ends);
  if (read.empty()) return;
  std::copy(read.begin(), read.end(), inbox.space());
  inbox.received(read.size());
}

// The socket goes over with what was read of it; here it is only closed. Where nobody takes it, nobody will
// take others; what is too much for a message waits for a part of it to be served here.
bool Session::move_on() {
  if (inbox.unread().size() > kMostToMove) return false;
  if (!worker.passage->take(client.native_handle(), listener_, introduction(), inbox.unread())) {
    worker.passage = nullptr;
    return false;
  }
  client.close();
  return true;
}

// False: it is served here, for want of descriptors or of somebody who takes it.
net::Task<bool> Session::relay_on() {
  const auto told = introduction();
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) co_return false;
  const bool taken = worker.passage->take(pair[1], listener_, told, {});
  ::close(pair[1]);
  net::Stream other(worker.executor, pair[0]);
  if (!taken) worker.passage = nullptr;
  if (!taken) co_return false;
  disarm();
  late_ = false;
  state_ = State::Busy;
  onward_ = &other;
  Inbox answer(worker.blocks);
  Tunnel tunnel(*this, other, answer, kUnbounded, nullptr);
  tunnel.linger_for(kLinger);
  (void)co_await tunnel.run();
  onward_ = nullptr;
  co_return true;
}

}  // namespace weir::proxy
