#include "weir/proxy/entrance.hpp"

#include "proxy/session.hpp"

#include <exception>
#include <memory>
#include <utility>

namespace weir::proxy {

namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::seconds kBetweenComplaints{1};

constexpr unsigned kMostRefusals = 8;  // lines about clients that are not trusted between two complaints

}  // namespace

Entrance::Entrance(Worker& worker, net::Acceptor acceptor, net::TlsContext tls, std::size_t most_sessions,
                   Complain complain)
    : worker_(worker),
      acceptor_(std::move(acceptor)),
      pause_(worker.executor),
      tls_(std::move(tls)),
      most_sessions_(most_sessions),
      complain_(std::move(complain)) {}

void Entrance::open() {
  net::asio::co_spawn(worker_.executor, accept_all(), [this](const std::exception_ptr& failure) {
    if (failure) complain_("an accept loop ended");
  });
}

void Entrance::close() {
  closed_ = true;
  net::ErrorCode ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

net::Awaitable<void> Entrance::pause() {
  net::ErrorCode ignored;
  pause_.expires_after(kPause);
  co_await pause_.async_wait(net::into(ignored));
}

net::Awaitable<void> Entrance::accept_all() {
  while (!closed_) {
    if (worker_.sessions >= most_sessions_) {
      co_await pause();
      continue;
    }
    net::Socket socket(worker_.executor);
    net::RawEndpoint peer;
    net::ErrorCode ec;
    co_await acceptor_.async_accept(socket, peer, net::into(ec));
    if (closed_) co_return;
    if (!ec) {
      admit(std::move(socket), peer);
    } else if (ec != net::asio::error::connection_aborted) {
      complain_of_accepting(ec);
      co_await pause();
    }
  }
}

void Entrance::complain_of_accepting(const net::ErrorCode& ec) {
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) return;
  quiet_until_ = now + kBetweenComplaints;
  complain_("cannot accept connections: " + ec.message());
}

// Owns its session from the first byte to the last.
net::Task<void> Entrance::serve(std::unique_ptr<Session> session) {
  co_await session->run();
  if (!session->distrust().empty()) complain_of_client(*session);
}

void Entrance::complain_of_client(const Session& session) {
  const auto now = std::chrono::steady_clock::now();
  if (now >= refusals_until_) {
    refusals_until_ = now + kBetweenComplaints;
    refusals_ = 0;
  }
  if (++refusals_ > kMostRefusals) {
    ++untold_refusals_;
    return;
  }
  const auto more = std::exchange(untold_refusals_, 0);
  complain_("TLS: refused the client " + session.peer_text + ": " + std::string(session.distrust()) +
            (more != 0 ? "; and " + std::to_string(more) + " more since" : ""));
}

void Entrance::admit(net::Socket socket, const net::RawEndpoint& peer) {
  net::ErrorCode ignored;
  const int fd = socket.release(ignored);
  auto stream = tls_ ? net::Stream(worker_.executor, fd, tls_.get()) : net::Stream(worker_.executor, fd);
  auto session = std::make_unique<Session>(worker_, std::move(stream), peer);
  net::spawn(worker_.executor, serve(std::move(session)), [this](const std::exception_ptr& failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      complain_(std::string("a connection was dropped: ") + error.what());
    }
  });
}

}  // namespace weir::proxy
