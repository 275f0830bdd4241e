#include "redis/conversation.hpp"

#include "weir/base/units.hpp"
#include "weir/redis/error.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

namespace weir::redis {

namespace asio = net::asio;
using tcp = asio::ip::tcp;

struct Conversation::Line {
  explicit Line(net::Executor executor) : socket(executor), resolver(executor), timer(executor) {}

  void cancel() noexcept {
    net::ErrorCode ignored;
    resolver.cancel();
    socket.cancel(ignored);
  }

  net::Socket socket;
  asio::ip::basic_resolver<tcp, net::Executor> resolver;
  net::Timer timer;
  std::uint64_t wait = 0;  // counts the waits, so that a late timer ends none but its own
  bool late = false;       // the wait under way, or the last, has lasted too long
};

Conversation::Conversation(net::Executor executor, base::Duration patience)
    : line_(std::make_shared<Line>(executor)), patience_(patience) {}

Conversation::~Conversation() {
  close();
}

void Conversation::close() noexcept {
  net::ErrorCode ignored;
  ++line_->wait;
  line_->timer.cancel();
  line_->cancel();
  line_->socket.close(ignored);
}

void Conversation::arm() {
  line_->late = false;
  line_->timer.expires_after(patience_);
  line_->timer.async_wait([weak = std::weak_ptr(line_), wait = ++line_->wait](net::ErrorCode ec) {
    const auto line = weak.lock();
    if (ec || !line || line->wait != wait) return;
    line->late = true;
    line->cancel();
  });
}

net::ErrorCode Conversation::disarm(net::ErrorCode ec) {
  ++line_->wait;
  line_->timer.cancel();
  if (!ec || ec == StoreError::BadReply) return ec;
  if (line_->late) {
    why_ = "no answer within " + base::to_string(patience_);
    return StoreError::Timeout;
  }
  why_ = ec.message();
  return StoreError::ConnectionLost;
}

net::Awaitable<net::ErrorCode> Conversation::open(const base::Endpoint& address) {
  close();
  reader_.reset();
  arm();
  const net::ErrorCode ec = co_await connect(address);
  co_return disarm(ec);
}

net::Awaitable<net::ErrorCode> Conversation::connect(const base::Endpoint& address) {
  net::ErrorCode ec;
  auto& socket = line_->socket;
  if (address.is_unix()) {
    const asio::local::stream_protocol::endpoint path(address.unix_path);
    const asio::generic::stream_protocol::endpoint endpoint(path);
    co_await socket.async_connect(endpoint, net::into(ec));
    co_return ec;
  }
  const auto port = std::to_string(address.port);
  const auto found = co_await line_->resolver.async_resolve(address.host, port, net::into(ec));
  for (const auto& entry : found) {
    net::ErrorCode ignored;
    socket.close(ignored);
    const asio::generic::stream_protocol::endpoint endpoint(entry.endpoint());
    co_await socket.async_connect(endpoint, net::into(ec));
    if (!ec || ec == asio::error::operation_aborted) break;  // there, late, or closed meanwhile
  }
  if (!ec) socket.set_option(tcp::no_delay(true), ec);
  co_return ec;
}

net::Awaitable<net::ErrorCode> Conversation::ask(std::string_view command) {
  net::ErrorCode ec = co_await say(command);
  if (!ec) ec = co_await hear();
  co_return ec;
}

net::Awaitable<net::ErrorCode> Conversation::say(std::string_view bytes) {
  net::ErrorCode ec;
  arm();
  co_await asio::async_write(line_->socket, asio::buffer(bytes), net::into(ec));
  co_return disarm(ec);
}

net::Awaitable<net::ErrorCode> Conversation::hear() {
  arm();
  const net::ErrorCode ec = co_await read_reply();
  co_return disarm(ec);
}

net::Awaitable<net::ErrorCode> Conversation::read_reply() {
  for (;;) {
    const auto next = reader_.next();
    if (next == ReplyReader::Next::Ready) co_return net::ErrorCode();
    if (next == ReplyReader::Next::Malformed) {
      why_ = "what answers is not a Redis";
      co_return StoreError::BadReply;
    }
    net::ErrorCode ec;
    const std::size_t n = co_await line_->socket.async_read_some(asio::buffer(input_), net::into(ec));
    if (ec) co_return ec;
    reader_.feed({input_.data(), n});
  }
}

}  // namespace weir::redis
