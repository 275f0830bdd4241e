#include "weir/proxy/acceptor.hpp"

#include "proxy/client/session.hpp"

#include "weir/net/signal.hpp"
#include "weir/net/use_task.hpp"
#include "weir/policy/identity.hpp"
#include "weir/upstream/pool.hpp"

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include <sys/socket.h>

namespace weir::proxy {

namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::seconds kBetweenLines{1};

constexpr unsigned kAcceptsInTurn = 16;  // connections that the worker accepts before it serves others

constexpr std::size_t kEvicted = 32;  // each call of evict() closes about one in 32 sessions

// largest number of log lines per second about clients whose certificate weir rejects or that abuse HTTP/2
constexpr unsigned kMostLinesAboutClients = 8;

}  // namespace

Acceptor::Acceptor(Worker& worker, net::AcceptorSocket acceptor, AcceptorSettings settings, Complain complain)
    : worker_(worker),
      acceptor_(std::move(acceptor)),
      pause_(worker.executor),
      settings_(std::move(settings)),
      complain_(std::move(complain)) {}

// TLS clients send their first bytes at once, so weir accepts them when these bytes have arrived. Clients of
// plain HTTP may connect in advance, so weir accepts them before they send.
void Acceptor::defer() noexcept {
  net::defer_accept(acceptor_, settings_.tls != nullptr);
}

void Acceptor::renew(AcceptorSettings settings) noexcept {
  settings_ = std::move(settings);
  defer();
}

void Acceptor::open() {
  accepting_ = true;
  defer();
  net::spawn(worker_.executor, accept_all(), [this](const std::exception_ptr& failure) {
    accepting_ = false;
    if (!failure) return;
    close();  // closes the socket: otherwise the kernel would accept connections that no session serves
    try {
      complain_("an accept loop ended");
    } catch (const std::bad_alloc&) {
    }
  });
}

void Acceptor::close() {
  closed_ = true;
  worker_.watchdog.wake_all();  // wakes idle sessions of this listener, so that they close
  net::close_acceptor(acceptor_);
  pause_.cancel();
}

void Acceptor::hold() {
  held_ = true;
  net::ErrorCode ignored;
  acceptor_.cancel(ignored);
  pause_.cancel();
}

// Continues to accept. If the accept loop has not ended since hold(), the same loop continues. Calls defer()
// in both cases, because a new process that failed in an upgrade shares the socket and may have changed it.
void Acceptor::resume() {
  held_ = false;
  if (closed_) return;
  if (accepting_)
    defer();
  else
    open();
}

net::Task<void> Acceptor::pause() {
  net::ErrorCode ignored;
  pause_.expires_after(kPause);
  co_await pause_.async_wait(net::use_task(ignored));
}

// Evicts only a fraction of the idle connections, so that they do not all close at once. Repeated calls still
// make room for a flood of clients within seconds.
void Acceptor::evict(IdleEvictor::Rank most) noexcept {
  worker_.idle_evictor.want(worker_.sessions / kEvicted + 1, most);
}

// Waits until a new connection is in the kernel's backlog. If the worker still has no room for the
// connection, evicts idle connections.
net::Task<void> Acceptor::make_room() {
  net::ErrorCode ec;
  co_await acceptor_.async_wait(net::AcceptorSocket::wait_read, net::use_task(ec));
  if (closed_ || held_ || !is_full()) co_return;
  evict(IdleEvictor::Rank::Begun);
  co_await pause();
}

// Accepts connections until close() or hold(). If memory for a session runs out, closes the new connection
// and pauses before it accepts another.
net::Task<void> Acceptor::accept_all() {
  net::ErrorCode ec;
  while (!closed_ && !held_) {
    if (ec) {
      worker_.counters.accept_failures.add();
      complain_of_accepting(ec);
      if (upstream::is_out_of_descriptors(ec)) worker_.worker_snapshots.drop_idle_servers(worker_.sessions);
      evict(IdleEvictor::Rank::Idle);
      pause_.expires_after(kPause);
      co_await pause_.async_wait(net::use_task(ec));  // not pause(), whose coroutine frame would need memory
    }
    try {
      ec = co_await accept_one();
    } catch (const std::bad_alloc&) {
      ec = net::asio::error::no_memory;
    }
  }
}

// Tries to accept before it waits: without a free descriptor, accept(2) fails even if no client waits. So
// weir learns early that descriptors run out. It evicts idle connections before its own connections to
// servers and the admin listener lack descriptors.
net::Task<net::ErrorCode> Acceptor::accept_one() {
  net::ErrorCode ec;
  if (is_full()) {
    co_await make_room();
    co_return ec;
  }
  net::RawEndpoint peer;
  auto connection = net::accept_connection(acceptor_, peer, ec);
  if (ec == net::asio::error::would_block) {
    co_await acceptor_.async_wait(net::AcceptorSocket::wait_read, net::use_task(ec));
    if (ec == net::asio::error::operation_aborted) ec.clear();
    co_return ec;
  }
  ConnectionsPerIp::Slot slot;
  if (!ec &&
      // if count_connection() returns false, the destructor of `connection` closes the connection
      count_connection(worker_, net::peer_address(peer), slot))
    admit(std::move(connection), peer, std::move(slot));
  if (++accepted_in_turn_ % kAcceptsInTurn == 0) co_await net::Pause(worker_.executor);
  co_return ec;
}

void Acceptor::complain_of_accepting(const net::ErrorCode& ec) {
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) return;
  quiet_until_ = now + kBetweenLines;
  try {
    complain_("cannot accept connections: " + ec.message());
  } catch (const std::bad_alloc&) {  // no memory for the message; the counter still shows the failure
  }
}

// Owns the session until the connection ends.
net::Task<void> Acceptor::serve(std::unique_ptr<Session> session) {
  bool open = co_await session->begin();
  while (open) {
    open = co_await session->run();
    if (!open) break;
    const auto ec = co_await session->client.wait_readable();
    open = session->end_quiet(ec);
  }
  if (!session->rejection_reason().empty())
    complain_of_client("TLS: refused the client " + session->peer.text + ": " +
                       std::string(session->rejection_reason()));
  if (!session->abuse().empty())
    complain_of_client("HTTP/2: ended the connection of the client " + session->peer.text +
                       ", which exceeded a bound (" + std::string(session->abuse()) + ")");
}

void Acceptor::complain_of_client(const std::string& what) {
  const auto now = std::chrono::steady_clock::now();
  if (now >= lines_reset_at_) {
    lines_reset_at_ = now + kBetweenLines;
    lines_about_clients_ = 0;
  }
  if (++lines_about_clients_ > kMostLinesAboutClients) {
    ++omitted_lines_;
    return;
  }
  const auto more = std::exchange(omitted_lines_, 0);
  complain_(what + (more != 0 ? "; and " + std::to_string(more) + " more since" : ""));
}

bool count_connection(Worker& worker, const base::IpAddress& address, ConnectionsPerIp::Slot& slot) {
  const auto& client = worker.config().client;
  if (!worker.connections_per_ip.bounded() || policy::is_trusted(client, address)) return true;
  slot = worker.connections_per_ip.enter(policy::network_of(client, address));
  if (!slot) worker.counters.connections_crowded.add();
  return static_cast<bool>(slot);
}

// Adopts a connection that another process accepted. Serves the connection even if its address has reached
// max_connections_per_ip: this process may have counted newer connections of the address first. Expects
// neither a PROXY header nor TLS, because the other process handles both.
void Acceptor::adopt(int connection, const ConnectionInfo& connection_info, std::string_view read) {
  net::Stream stream(worker_.executor, connection);
  const auto peer = net::remote_endpoint(connection);
  const auto& client = worker_.config().client;
  const auto address = connection_info.ends ? connection_info.ends->source : net::peer_address(peer);
  ConnectionsPerIp::Slot slot;
  if (worker_.connections_per_ip.bounded() && !policy::is_trusted(client, address))
    slot = worker_.connections_per_ip.enter(policy::network_of(client, address));
  auto session =
      std::make_unique<Session>(worker_, std::move(stream), peer, std::move(slot), settings_, closed_);
  session->begin_with(connection_info, read);
  begin(std::move(session));
}

void Acceptor::admit(net::OwnedDescriptor connection, const net::RawEndpoint& peer,
                     ConnectionsPerIp::Slot slot) {
  const int fd = connection.release();
  const auto& tls = settings_.tls;
  auto stream = tls ? net::Stream(worker_.executor, fd, tls.get()) : net::Stream(worker_.executor, fd);
  auto session =
      std::make_unique<Session>(worker_, std::move(stream), peer, std::move(slot), settings_, closed_);
  if (settings_.proxy_protocol) session->expect_proxy_header();
  begin(std::move(session));
}

void Acceptor::begin(std::unique_ptr<Session> session) {
  ++sessions_;
  try {
    net::spawn(worker_.executor, serve(std::move(session)),
               [this](const std::exception_ptr& failure) { note_end(failure); });
  } catch (...) {
    --sessions_;  // the session did not start, so it does not call note_end()
    throw;
  }
}

void Acceptor::note_end(const std::exception_ptr& failure) {
  --sessions_;
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    complain_of_accepting(net::asio::error::no_memory);
  } catch (const std::exception& error) {
    complain_(std::string("a connection was dropped: ") + error.what());
  }
}

}  // namespace weir::proxy
