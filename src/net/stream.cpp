#include "weir/net/stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace weir::net {

// TLS driven by hand: OpenSSL takes ciphertext from `incoming`, which one asynchronous read fills, and sends
// its own straight to the socket. That is one copy and no memory BIO pair less than asio::ssl::stream.
struct Stream::Tls {
  SSL* ssl = nullptr;
  std::vector<char> buffer;   // ciphertext; given back by trim()
  std::string_view incoming;  // what of it OpenSSL has not taken yet
  bool ended = false;

  static constexpr std::size_t kBuffer = 16 << 10;

  Tls(SSL_CTX* context, int socket);
  ~Tls() { SSL_free(ssl); }
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // What an SSL_… call that did not succeed means: would_block (feed or wait), eof, or an error.
  [[nodiscard]] ErrorCode meaning(int result) const noexcept;
};

namespace {

std::size_t send_vector(int fd, iovec* parts, std::size_t count, ErrorCode& ec) noexcept {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  for (;;) {
    const auto sent = ::sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) ec = ErrorCode(errno, boost::system::system_category());
    return 0;
  }
}

// What the BIO under each SSL object works on; owned by it.
struct BioView {
  int fd;
  std::string_view* incoming;
  const bool* ended;
};

int bio_write(BIO* bio, const char* bytes, int size) {
  const int fd = static_cast<const BioView*>(BIO_get_data(bio))->fd;
  BIO_clear_retry_flags(bio);
  const auto sent = ::send(fd, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<int>(sent);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) BIO_set_retry_write(bio);
  return -1;
}

int bio_read(BIO* bio, char* out, int size) {
  const auto* view = static_cast<const BioView*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (view->incoming->empty()) {
    if (*view->ended) return 0;
    BIO_set_retry_read(bio);
    return -1;
  }
  const auto count = std::min(static_cast<std::size_t>(size), view->incoming->size());
  std::memcpy(out, view->incoming->data(), count);
  view->incoming->remove_prefix(count);
  return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return *static_cast<const BioView*>(BIO_get_data(bio))->ended ? 1 : 0;
  return 0;
}

int bio_destroy(BIO* bio) {
  delete static_cast<BioView*>(BIO_get_data(bio));
  return 1;
}

BIO_METHOD* bio_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir stream");
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_control);
    BIO_meth_set_destroy(m, bio_destroy);
    return m;
  }();
  return method;
}

}  // namespace

Stream::Tls::Tls(SSL_CTX* context, int socket) : ssl(SSL_new(context)) {
  BIO* bio = BIO_new(bio_method());
  BIO_set_data(bio, new BioView{socket, &incoming, &ended});
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_accept_state(ssl);
}

ErrorCode Stream::Tls::meaning(int result) const noexcept {
  switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return asio::error::would_block;
    case SSL_ERROR_ZERO_RETURN:
      return asio::error::eof;
    case SSL_ERROR_SYSCALL:
      return ended ? ErrorCode(asio::error::eof) : ErrorCode(asio::error::connection_reset);
    default: {
      const auto code = ERR_get_error();
      ERR_clear_error();
      return ErrorCode(static_cast<int>(code), asio::error::get_ssl_category());
    }
  }
}

Stream::Stream(Socket socket) : socket_(std::move(socket)) {
  ErrorCode ignored;
  socket_.native_non_blocking(true, ignored);
}

Stream::Stream(Socket socket, SSL_CTX* context) : Stream(std::move(socket)) {
  tls_ = std::make_unique<Tls>(context, socket_.native_handle());
}

Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

Awaitable<ErrorCode> Stream::feed() {
  auto& tls = *tls_;
  if (tls.buffer.empty()) tls.buffer.resize(Tls::kBuffer);
  ErrorCode ec;
  const auto space = asio::buffer(tls.buffer);
  const auto count = co_await socket_.async_read_some(space, into(ec));
  if (ec == asio::error::eof) {
    tls.ended = true;
    co_return ErrorCode{};
  }
  tls.incoming = {tls.buffer.data(), count};
  co_return ec;
}

Awaitable<ErrorCode> Stream::wait_writable() {
  ErrorCode ec;
  co_await socket_.async_wait(Socket::wait_write, into(ec));
  co_return ec;
}

Awaitable<ErrorCode> Stream::wait_readable() {
  ErrorCode ec;
  co_await socket_.async_wait(Socket::wait_read, into(ec));
  co_return ec;
}

Awaitable<ErrorCode> Stream::handshake() {
  for (;;) {
    ERR_clear_error();
    const int result = SSL_do_handshake(tls_->ssl);
    if (result == 1) co_return ErrorCode{};
    auto ec = tls_->meaning(result);
    if (ec != asio::error::would_block) co_return ec;
    if (SSL_want_write(tls_->ssl))
      ec = co_await wait_writable();
    else
      ec = co_await feed();
    if (ec) co_return ec;
  }
}

Awaitable<std::size_t> Stream::read_some(char* at, std::size_t size, ErrorCode& ec) {
  ec = {};
  if (!tls_) {
    const auto count = co_await socket_.async_read_some(asio::buffer(at, size), into(ec));
    co_return count;
  }
  for (;;) {
    ERR_clear_error();
    const int result = SSL_read(tls_->ssl, at, static_cast<int>(std::min<std::size_t>(size, 1 << 30)));
    if (result > 0) co_return static_cast<std::size_t>(result);
    ec = tls_->meaning(result);
    if (ec != asio::error::would_block) co_return 0;
    ec = co_await feed();
    if (ec) co_return 0;
  }
}

std::size_t Stream::send_plain(std::string_view first, std::string_view second, ErrorCode& ec) noexcept {
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  for (const auto part : {first, second})
    if (!part.empty()) parts[count++] = {const_cast<char*>(part.data()), part.size()};
  return count == 0 ? 0 : send_vector(socket_.native_handle(), parts.data(), count, ec);
}

std::size_t Stream::send_tls(std::string_view bytes, ErrorCode& ec) noexcept {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    ERR_clear_error();
    const auto rest = std::min<std::size_t>(bytes.size() - sent, 1 << 30);
    const int result = SSL_write(tls_->ssl, bytes.data() + sent, static_cast<int>(rest));
    if (result <= 0) {
      const auto meaning = tls_->meaning(result);
      if (meaning != asio::error::would_block) ec = meaning;
      break;
    }
    sent += static_cast<std::size_t>(result);
  }
  return sent;
}

std::size_t Stream::try_write(std::string_view first, std::string_view second, ErrorCode& ec) {
  ec = {};
  if (!tls_) return send_plain(first, second, ec);
  std::size_t sent = send_tls(first, ec);
  if (sent == first.size() && !ec) sent += send_tls(second, ec);
  return sent;
}

Awaitable<ErrorCode> Stream::write(std::string_view first, std::string_view second) {
  for (;;) {
    ErrorCode ec;
    const auto sent = try_write(first, second, ec);
    if (ec) co_return ec;
    const auto of_first = std::min(sent, first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(sent - of_first);
    if (first.empty() && second.empty()) co_return ec;
    ec = co_await wait_writable();
    if (ec) co_return ec;
  }
}

bool Stream::peer_left() const noexcept {
  pollfd probe{const_cast<Socket&>(socket_).native_handle(), POLLRDHUP, 0};
  return ::poll(&probe, 1, 0) > 0 && (probe.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool Stream::has_pending() const noexcept {
  return tls_ && (SSL_has_pending(tls_->ssl) == 1 || !tls_->incoming.empty());
}

void Stream::trim() noexcept {
  if (tls_ && tls_->incoming.empty()) std::vector<char>().swap(tls_->buffer);
}

void Stream::cancel() noexcept {
  ErrorCode ignored;
  socket_.cancel(ignored);
}

void Stream::shutdown_send() noexcept {
  if (!is_open()) return;
  if (tls_ && SSL_is_init_finished(tls_->ssl)) SSL_shutdown(tls_->ssl);
  ERR_clear_error();
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Stream::close() noexcept {
  // The number may soon be another connection's.
  if (tls_) static_cast<BioView*>(BIO_get_data(SSL_get_wbio(tls_->ssl)))->fd = -1;
  ErrorCode ignored;
  socket_.close(ignored);
}

}  // namespace weir::net
