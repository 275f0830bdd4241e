#include "redis/connection/request_reply.hpp"

#include "redis/connection/wire.hpp"

#include "weir/base/units.hpp"
#include "weir/redis/error.hpp"

#include <utility>

namespace weir::redis {

struct RequestReply::Link {
  Link(net::Executor executor, std::shared_ptr<TlsClient> tls)
      : wire(executor, std::move(tls)), timer(executor) {}

  Wire wire;
  net::Timer timer;
  // The number of the current wait. A late timer of an earlier wait has a lower number, and does not end the
  // current wait.
  std::uint64_t wait = 0;
  bool late = false;  // true: the current or last wait took longer than `patience`
};

RequestReply::RequestReply(net::Executor executor, base::Duration patience, std::shared_ptr<TlsClient> tls)
    : link_(std::make_shared<Link>(executor, std::move(tls))), patience_(patience) {}

RequestReply::~RequestReply() {
  close();
}

void RequestReply::close() noexcept {
  ++link_->wait;
  link_->timer.cancel();
  link_->wire.close();
}

void RequestReply::arm() {
  link_->late = false;
  link_->timer.expires_after(patience_);
  link_->timer.async_wait([weak = std::weak_ptr(link_), wait = ++link_->wait](net::ErrorCode ec) {
    const auto line = weak.lock();
    if (ec || !line || line->wait != wait) return;
    line->late = true;
    line->wire.cancel();
  });
}

net::ErrorCode RequestReply::disarm(net::ErrorCode ec) {
  ++link_->wait;
  link_->timer.cancel();
  if (!ec || ec == StoreError::BadReply) return ec;
  if (link_->late) {
    why_ = "no reply within " + base::to_string(patience_) +
           (link_->wire.is_shaking() ? " to the TLS handshake; is it a port without TLS?" : "");
    return StoreError::Timeout;
  }
  why_ = link_->wire.why();
  return StoreError::ConnectionLost;
}

net::Task<net::ErrorCode> RequestReply::open(const base::Endpoint& address) {
  close();
  reader_.reset();
  arm();
  const net::ErrorCode ec = co_await link_->wire.open(address, patience_);
  co_return disarm(ec);
}

net::Task<net::ErrorCode> RequestReply::ask(std::string_view command) {
  net::ErrorCode ec = co_await send(command);
  if (!ec) ec = co_await receive();
  co_return ec;
}

net::Task<net::ErrorCode> RequestReply::send(std::string_view bytes) {
  arm();
  const net::ErrorCode ec = co_await link_->wire.write(bytes);
  co_return disarm(ec);
}

net::Task<net::ErrorCode> RequestReply::receive() {
  arm();
  const net::ErrorCode ec = co_await read_reply();
  co_return disarm(ec);
}

net::Task<net::ErrorCode> RequestReply::read_reply() {
  for (;;) {
    const auto next = reader_.next();
    if (next == ReplyReader::Next::Ready) co_return net::ErrorCode();
    if (next == ReplyReader::Next::Malformed) {
      why_ = "the peer does not speak the Redis protocol";
      co_return StoreError::BadReply;
    }
    net::ErrorCode ec;
    const std::size_t n = co_await link_->wire.read_some(input_.data(), input_.size(), ec);
    if (ec) co_return ec;
    reader_.feed({input_.data(), n});
  }
}

}  // namespace weir::redis
