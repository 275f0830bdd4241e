#include "weir/net/stream.hpp"

#include "net/certificate_text.hpp"
#include "net/stream_tls.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <memory>
#include <new>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace weir::net {

namespace {

ErrorCode last_error() noexcept {
  return {errno, boost::system::system_category()};
}

// The most pieces of ciphertext (up to 16 KiB each) that one call of try_handshake() reads and processes. A
// normal handshake needs one piece for each flight, or a few for long certificate chains. The bound keeps a
// hostile client that sends records of one octet from occupying the worker.
constexpr unsigned kPiecesOfHandshake = 4;

// Returns the number of octets that send(2) accepted. It is no error if the socket's buffer is full; the
// result is then 0.
template <class Send>
std::size_t sent_by(Send send, ErrorCode& ec) noexcept {
  for (;;) {
    const ssize_t sent = send();
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) ec = last_error();
    return 0;
  }
}

std::size_t send_one(int fd, std::string_view bytes, ErrorCode& ec) noexcept {
  return sent_by([&] { return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); }, ec);
}

std::size_t send_two(int fd, std::string_view first, std::string_view second, ErrorCode& ec) noexcept {
  std::array<iovec, 2> parts{iovec{const_cast<char*>(first.data()), first.size()},
                             iovec{const_cast<char*>(second.data()), second.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return sent_by([&] { return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT); }, ec);
}

}  // namespace

Stream::Stream(int fd) noexcept : fd_(fd) {}

// Each call on the socket has the flag MSG_DONTWAIT, so the socket needs no system call that makes it
// non-blocking.
Stream::Stream(const Executor& executor, int fd) : Stream(fd) {
  port_ = std::make_unique<Port>(Reactor::of(executor), fd_);
}

Stream::Stream(const Executor& executor, int fd, SSL_CTX* context) : Stream(executor, fd) {
  context_ = share(context);
}

Stream::Stream(const Executor& executor, int fd, const TlsTarget& target) : Stream(executor, fd) {
  tls_ = std::make_unique<Tls>(target, fd_);
}

Stream::~Stream() {
  close();
}

Stream::Stream(Stream&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      owed_(std::exchange(other.owed_, 0)),
      context_(std::move(other.context_)),
      port_(std::move(other.port_)),
      tls_(std::move(other.tls_)) {}

ErrorCode Stream::begin_connect(const void* address, std::size_t size) noexcept {
  if (::connect(fd_, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) == 0) return {};
  if (errno != EINPROGRESS) return last_error();
  port_->filled();
  return asio::error::in_progress;
}

ErrorCode Stream::end_connect() noexcept {
  int failure = 0;
  socklen_t length = sizeof failure;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &failure, &length);
  return {failure, boost::system::system_category()};
}

// Reads available bytes from the socket. Returns 0 with an error: eof, would_block or another.
std::size_t Stream::receive(char* at, std::size_t size, ErrorCode& ec) noexcept {
  ec = {};
  if (!port_) ec = asio::error::bad_descriptor;
  if (port_ && !port_->may_read()) ec = asio::error::would_block;
  if (ec) return 0;
  for (;;) {
    const auto got = ::recv(fd_, at, size, MSG_DONTWAIT);
    if (got > 0) {
      if (static_cast<std::size_t>(got) < size) port_->drained();
      return static_cast<std::size_t>(got);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0)
      ec = asio::error::eof;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      ec = asio::error::would_block;
    else
      ec = last_error();
    if (ec == asio::error::would_block) port_->drained();
    return 0;
  }
}

ErrorCode Stream::feed() {
  auto& tls = *tls_;
  if (!tls.buffer) tls.buffer = std::make_unique_for_overwrite<char[]>(Tls::kBuffer);
  // Keeps the ciphertext that OpenSSL has not consumed yet at the front of the buffer. There is such
  // ciphertext if OpenSSL must write before it reads on.
  const auto kept = tls.incoming.size();
  if (kept > 0) std::memmove(tls.buffer.get(), tls.incoming.data(), kept);
  if (kept == Tls::kBuffer) return asio::error::no_buffer_space;
  ErrorCode ec;
  const auto count = receive(tls.buffer.get() + kept, Tls::kBuffer - kept, ec);
  if (ec == asio::error::eof) {
    tls.ended = true;
    return {};
  }
  tls.incoming = {tls.buffer.get(), kept + count};
  return ec;
}

// Creates the SSL object when the client's first bytes arrive. Returns would_block until then.
ErrorCode Stream::begin_tls() {
  char first = 0;
  ErrorCode ec = port_ ? ErrorCode() : asio::error::bad_descriptor;
  if (!ec && !port_->may_read()) ec = asio::error::would_block;
  if (!ec && peek(&first, 1, ec) == 0 && ec == asio::error::would_block) port_->drained();
  if (ec) return ec;
  tls_ = std::make_unique<Tls>(context_.get(), fd_);
  context_.reset();  // tls_ holds its own reference to the context
  return {};
}

// Sends what OpenSSL has written in the handshake. Returns would_block if the socket's buffer is full.
ErrorCode Stream::send_outgoing() noexcept {
  auto& outgoing = tls_->outgoing;
  ErrorCode ec;
  if (!outgoing.empty()) outgoing.erase(0, send_one(fd_, outgoing, ec));
  return ec || outgoing.empty() ? ec : ErrorCode(asio::error::would_block);
}

ErrorCode Stream::try_handshake(bool& wants_room) {
  wants_room = false;
  if (!tls_)
    if (const auto ec = begin_tls()) return ec;
  for (unsigned pieces = 0;; ++pieces) {
    ERR_clear_error();
    const int result = SSL_do_handshake(tls_->ssl);
    const auto failure = result == 1 ? ErrorCode() : tls_->meaning(result);
    auto ec = send_outgoing();  // after a failed handshake, sends OpenSSL's alert
    if (failure && failure != asio::error::would_block) return failure;
    wants_room = ec == asio::error::would_block;
    if (wants_room) port_->filled();
    if (!ec && !failure) return tls_->admit();
    // Returns here, not after feed(): the reactor would not report the input that feed() has read.
    if (!ec && pieces == kPiecesOfHandshake) return asio::error::in_progress;
    if (!ec) ec = feed();
    if (ec) return ec;
  }
}

Task<ErrorCode> Stream::handshake() {
  for (;;) {
    bool wants_room = false;
    auto ec = try_handshake(wants_room);
    if (ec != asio::error::would_block) co_return ec;
    if (wants_room)
      ec = co_await wait_writable();
    else
      ec = co_await wait_readable();
    if (ec) co_return ec;
  }
}

std::size_t Stream::peek(char* at, std::size_t size, ErrorCode& ec) noexcept {
  ec = {};
  const auto got = ::recv(fd_, at, size, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0)
    ec = asio::error::eof;
  else
    ec = errno == EAGAIN || errno == EWOULDBLOCK ? ErrorCode(asio::error::would_block) : last_error();
  return 0;
}

Port::Wait Stream::wait_for_more() noexcept {
  if (port_) port_->drained();  // the caller has examined all available bytes, and now waits for more
  return wait_readable();
}

bool Stream::skip(std::size_t size) noexcept {
  std::array<char, 2048> scratch{};
  return size <= scratch.size() &&
         ::recv(fd_, scratch.data(), size, MSG_DONTWAIT) == static_cast<ssize_t>(size);
}

ErrorCode Stream::send_ahead(std::string_view proxy_header) noexcept {
  ErrorCode ec;
  const auto sent = send_plain(proxy_header, {}, ec);
  return !ec && sent < proxy_header.size() ? ErrorCode(asio::error::no_buffer_space) : ec;
}

std::string Stream::peer_subject() const {
  return tls_ ? subject_text(verified_certificate(tls_->ssl)) : std::string();
}

std::string Stream::peer_certificate() const {
  return tls_ ? byte_sequence(verified_certificate(tls_->ssl)) : std::string();
}

std::string_view Stream::rejection_reason(const ErrorCode& ended) const noexcept {
  if (!tls_ || ended.category() != asio::error::get_ssl_category()) return {};
  const auto code = static_cast<unsigned long>(ended.value());
  if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return "it presents no certificate";
  // Uses the result of the verification, not OpenSSL's error queue: if the certificate's signature is wrong,
  // the first error in the queue comes from another part of OpenSSL.
  const auto verdict = SSL_get_verify_result(tls_->ssl);
  return verdict == X509_V_OK ? std::string_view{} : X509_verify_cert_error_string(verdict);
}

// An alert of the peer has a reason code that is larger than all other reason codes of OpenSSL.
bool Stream::was_alerted(const ErrorCode& ended) noexcept {
  if (ended.category() != asio::error::get_ssl_category()) return false;
  const auto code = static_cast<unsigned long>(ended.value());
  return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET;
}

bool Stream::is_resumed() const noexcept {
  return tls_ && SSL_session_reused(tls_->ssl) == 1;
}

std::string_view Stream::protocol() const noexcept {
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  if (tls_) SSL_get0_alpn_selected(tls_->ssl, &chosen, &size);
  return {reinterpret_cast<const char*>(chosen), size};
}

std::string Stream::handshake_fault(const ErrorCode& ended) const {
  if (ended == asio::error::eof || ended == asio::error::connection_reset)
    return "the connection closed during the handshake";
  const auto distrusted = rejection_reason(ended);
  return distrusted.empty() ? ended.message() : std::string(distrusted);
}

TlsSession Stream::session() const noexcept {
  TlsSession session(tls_ && SSL_is_init_finished(tls_->ssl) ? SSL_get1_session(tls_->ssl) : nullptr);
  if (session && SSL_SESSION_is_resumable(session.get()) == 0) session.reset();
  return session;
}

std::size_t Stream::try_read(char* at, std::size_t size, ErrorCode& ec) {
  assert(size != 0);
  if (size == 0) {  // with size 0, recv(2) would return 0, which looks like the end of the connection
    ec = asio::error::no_buffer_space;
    return 0;
  }
  return tls_ ? read_records(at, size, ec) : receive(at, size, ec);
}

Task<std::size_t> Stream::read_some(char* at, std::size_t size, ErrorCode& ec) {
  for (;;) {
    const auto count = try_read(at, size, ec);
    if (ec != asio::error::would_block) co_return count;
    ec = co_await wait_readable();
    if (ec) co_return 0;
  }
}

std::size_t Stream::send_plain(std::string_view first, std::string_view second, ErrorCode& ec) noexcept {
  const auto size = first.size() + second.size();
  if (size == 0) return 0;
  const auto sent = first.empty() || second.empty() ? send_one(fd_, first.empty() ? second : first, ec)
                                                    : send_two(fd_, first, second, ec);
  if (sent < size && port_) port_->filled();
  return sent;
}

std::size_t Stream::send_tls(std::string_view first, std::string_view second, ErrorCode& ec) noexcept {
  bool full = false;
  auto sent = tls_->seal(first, full, ec);
  if (sent == first.size() && !ec) sent += tls_->seal(second, full, ec);
  if (full) port_->filled();
  return sent;
}

std::size_t Stream::try_write(std::string_view first, std::string_view second, ErrorCode& ec) {
  if (!owes_write()) return try_rest(first, second, ec);
  ec = StreamError::WriteOwed;
  return 0;
}

std::size_t Stream::try_rest(std::string_view first, std::string_view second, ErrorCode& ec) {
  ec = {};
  const auto size = first.size() + second.size();
  if (size < owed_)
    ec = StreamError::WriteOwed;  // the caller's text is shorter than the unsent rest, so it is another text
  if (ec) return 0;
  const auto sent = tls_ ? send_tls(first, second, ec) : send_plain(first, second, ec);
  // If a plain socket accepted no octet of a new text, the text has not begun, and no rest is owed. With TLS,
  // the text may have begun even so, because OpenSSL may have encrypted a part of it.
  if (sent > 0 || owes_write() || tls_) owed_ = size - sent;
  return sent;
}

Task<ErrorCode> Stream::write(std::string_view first, std::string_view second) {
  if (owes_write()) return Task<ErrorCode>::ended(StreamError::WriteOwed);
  return write_rest(first, second);
}

Task<ErrorCode> Stream::write_rest(std::string_view first, std::string_view second) {
  for (;;) {
    ErrorCode ec;
    const auto sent = try_rest(first, second, ec);
    if (ec) co_return ec;
    const auto of_first = std::min(sent, first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(sent - of_first);
    if (first.empty() && second.empty()) co_return ec;
    ec = co_await wait_writable();
    if (ec) co_return ec;
  }
}

std::size_t Stream::unacknowledged() const noexcept {
  int waiting = 0;
  return ::ioctl(fd_, TIOCOUTQ, &waiting) == 0 && waiting > 0 ? static_cast<std::size_t>(waiting) : 0;
}

bool Stream::has_pending() const noexcept {
  return tls_ && (SSL_has_pending(tls_->ssl) == 1 || !tls_->incoming.empty() || tls_->read_failure);
}

bool Stream::had_too_many_records() const noexcept {
  return tls_ && tls_->idle.too_many();
}

void Stream::trim() noexcept {
  if (tls_ && tls_->incoming.empty()) tls_->buffer.reset();
}

void Stream::cancel() noexcept {
  if (port_) port_->cancel();
}

void Stream::shutdown_send() noexcept {
  if (!is_open()) return;
  if (tls_ && SSL_is_init_finished(tls_->ssl) && !owes_write()) tls_->write_close_notify();
  ERR_clear_error();
  ::shutdown(fd_, SHUT_WR);
}

void Stream::close() noexcept {
  if (!is_open()) return;
  if (tls_) tls_->detach();
  port_.reset();
  ::close(std::exchange(fd_, -1));
}

}  // namespace weir::net
