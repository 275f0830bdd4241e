#include "redis/connection/wire.hpp"

#include "weir/net/stream_error.hpp"
#include "weir/net/use_task.hpp"
#include "weir/redis/error.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

namespace weir::redis {

namespace asio = net::asio;
using tcp = asio::ip::tcp;

namespace {

// Cancels the look-up of a name. Cancelling needs memory. If memory runs out, the look-up continues, and
// open() discards its late result.
template <class Resolver>
void end_lookup(Resolver& resolver) noexcept {
  try {
    resolver.cancel();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

Wire::Wire(net::Executor executor, std::shared_ptr<TlsClient> tls)
    : socket_(executor), resolver_(executor), share_(executor), client_(std::move(tls)) {}

Wire::~Wire() {
  close();
}

void Wire::cancel() noexcept {
  net::ErrorCode ignored;
  cancelled_ = true;
  end_lookup(resolver_);
  socket_.cancel(ignored);
}

void Wire::close() noexcept {
  net::ErrorCode ignored;
  closed_ = true;
  end_lookup(resolver_);
  socket_.close(ignored);
}

net::Task<net::ErrorCode> Wire::open(const base::Endpoint& address, base::Duration patience) {
  close();
  closed_ = cancelled_ = shaking_ = received_ = broken_ = false;
  tls_.reset();
  net::ErrorCode ec = co_await dial(address, patience);
  if (!ec && (closed_ || cancelled_)) ec = asio::error::operation_aborted;
  if (!ec) socket_.non_blocking(true, ec);
  if (ec) why_ = ec.message();
  if (!ec && client_) ec = co_await shake_hands(address.host);
  co_return ec;
}

net::Task<net::ErrorCode> Wire::dial(const base::Endpoint& address, base::Duration patience) {
  net::ErrorCode ec;
  if (address.is_unix()) {
    const asio::local::stream_protocol::endpoint path(address.unix_path);
    const asio::generic::stream_protocol::endpoint endpoint(path);
    co_await socket_.async_connect(endpoint, net::use_task(ec));
  } else {
    ec = co_await dial_tcp(address, patience);
  }
  co_return ec;
}

net::Task<net::ErrorCode> Wire::dial_tcp(const base::Endpoint& address, base::Duration patience) {
  net::ErrorCode ec;
  const auto port = std::to_string(address.port);
  const auto found = co_await resolver_.async_resolve(address.host, port, net::use_task(ec));
  std::vector<Address> addresses;
  for (const auto& entry : found) addresses.push_back(entry.endpoint());
  if (const auto at = std::find(addresses.begin(), addresses.end(), begin_); at != addresses.end())
    std::rotate(addresses.begin(), at, addresses.end());
  begin_.reset();
  // The longest time for each address but the last: 1/(n + 1) of `patience` for n addresses. At least two
  // shares are left for the last address and the steps after the TCP connect, such as the TLS handshake.
  const auto share = patience / (static_cast<base::Duration::rep>(addresses.size()) + 1);
  for (std::size_t at = 0; at < addresses.size() && !closed_ && !cancelled_; ++at) {
    const bool last = at + 1 == addresses.size();
    ec = co_await connect(addresses[at], last ? base::kForever : share);
    if (!ec) opened_ = addresses[at], begin_ = addresses[(at + 1) % addresses.size()];
    if (!ec || ec == asio::error::operation_aborted)
      break;  // connected; or the deadline has passed, or the wire was closed
  }
  if (!ec && !closed_) socket_.set_option(tcp::no_delay(true), ec);
  co_return ec;
}

// Tries one address of a server. Returns timed_out if the address does not answer within `most`.
net::Task<net::ErrorCode> Wire::connect(const Address& address, base::Duration most) {
  net::ErrorCode ec;
  socket_.close(ec);
  // The timer's handler has only a weak pointer to this flag. So a handler that runs after the end of this
  // coroutine does nothing.
  const auto silent = std::make_shared<bool>(false);
  if (most != base::kForever) {
    share_.expires_after(most);
    share_.async_wait([this, weak = std::weak_ptr(silent)](net::ErrorCode cancelled) {
      const auto here = weak.lock();
      if (cancelled || !here) return;
      *here = true;
      socket_.cancel(cancelled);
    });
  }
  const asio::generic::stream_protocol::endpoint endpoint(address);
  co_await socket_.async_connect(endpoint, net::use_task(ec));
  share_.cancel();
  if (*silent && ec == asio::error::operation_aborted) ec = asio::error::timed_out;
  co_return ec;
}

net::Task<net::ErrorCode> Wire::shake_hands(const std::string& host) {
  auto ssl = client_->begin(host);
  if (!ssl) {
    why_ = ssl.error().message;
    co_return StoreError::NoTls;
  }
  tls_ = std::make_unique<Tls>(Tls{TlsCodec(*ssl), {}});
  shaking_ = true;
  for (;;) {
    const auto handshake = tls_->codec.handshake();
    net::ErrorCode ec;
    const auto sealed = asio::buffer(tls_->codec.sealed());
    co_await asio::async_write(socket_, sealed, net::use_task(ec));
    tls_->codec.sealed().clear();
    if (handshake == TlsCodec::HandshakeResult::Failed) {
      why_ = tls_->codec.why();
      co_return StoreError::NoTls;
    }
    if (handshake == TlsCodec::HandshakeResult::Done) break;
    if (!ec) ec = co_await feed();
    if (ec) {
      why_ = "the TLS handshake failed: " + ec.message();
      co_return StoreError::NoTls;
    }
  }
  shaking_ = false;
  co_return net::ErrorCode();
}

net::Task<net::ErrorCode> Wire::feed() {
  net::ErrorCode ec;
  const std::size_t n = co_await socket_.async_read_some(asio::buffer(tls_->input), net::use_task(ec));
  if (!ec) tls_->codec.feed({tls_->input.data(), n});
  co_return ec;
}

net::Task<std::size_t> Wire::read_some(char* at, std::size_t size, net::ErrorCode& ec) {
  std::size_t n = 0;
  if (!tls_) {
    n = co_await socket_.async_read_some(asio::buffer(at, size), net::use_task(ec));
    if (ec) why_ = ec.message();
    co_return n;
  }
  for (;;) {
    bool ended = false;
    n = tls_->codec.open(at, size, ended);
    received_ = received_ || n > 0;
    if (n > 0) break;
    if (ended) {
      why_ = tls_->codec.why();
      ec = asio::error::eof;
      break;
    }
    ec = co_await feed();
    if (ec) why_ = words_for(ec);
    if (ec) break;
  }
  co_return n;
}

net::Task<net::ErrorCode> Wire::write(std::string_view bytes) {
  net::ErrorCode ec;
  if (broken_) co_return net::StreamError::WriteOwed;
  if (tls_) {
    tls_->codec.seal(bytes);
    bytes = tls_->codec.sealed();
  }
  co_await asio::async_write(socket_, asio::buffer(bytes), net::use_task(ec));
  if (tls_) tls_->codec.sealed().clear();
  broken_ = ec.failed();
  if (ec) why_ = words_for(ec);
  co_return ec;
}

// Returns the text for an error. The text names a possible cause that weir cannot see: the server may require
// another client certificate. In TLS 1.3 the client has finished its handshake before the server checks that
// certificate (RFC 8446, appendix A.1). The server then sends an alert and closes the connection. The alert
// usually gets lost, because the server does not read what weir has sent.
std::string Wire::words_for(const net::ErrorCode& ec) const {
  const bool hung_up =
      ec == asio::error::connection_reset || ec == asio::error::broken_pipe || ec == asio::error::eof;
  return ec.message() +
         (tls_ && !received_ && hung_up
              ? " right after the TLS handshake; does it require a (different) client certificate?"
              : "");
}

unsigned Wire::send(std::string& bytes, net::ErrorCode& ec) {
  if (broken_) {
    ec = net::StreamError::WriteOwed;
    why_ = ec.message();
    return 0;
  }
  if (!tls_) return send_some(bytes, ec);
  tls_->codec.seal(bytes);
  bytes.clear();
  return send_some(tls_->codec.sealed(), ec);
}

unsigned Wire::send_some(std::string& bytes, net::ErrorCode& ec) {
  std::size_t sent = 0;
  unsigned calls = 0;
  while (sent < bytes.size() && !ec) {
    ++calls;
    sent += socket_.write_some(asio::buffer(bytes.data() + sent, bytes.size() - sent), ec);
  }
  bytes.erase(0, sent);
  broken_ = ec && ec != asio::error::would_block;
  if (broken_) why_ = ec.message();
  return calls;
}

}  // namespace weir::redis
