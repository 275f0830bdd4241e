#include "net/stream_tls.hpp"

#include "weir/net/challenges.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

namespace weir::net {

namespace {

ErrorCode tls_error(int reason) noexcept {
  return {static_cast<int>(ERR_PACK(ERR_LIB_SSL, 0, reason)), asio::error::get_ssl_category()};
}

// Returns the number of appended bytes; -1 if memory has run out.
int append(std::string& outgoing, const char* bytes, int size) noexcept {
  try {
    outgoing.append(bytes, static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    return -1;
  }
  return size;
}

// The data of the BIO object through which OpenSSL reads and writes. The SSL object owns the BIO.
struct BioView {
  int fd;
  std::string_view* incoming;
  std::string* outgoing;  // null: bytes are sent at once, with `flags`
  int flags;
  const bool* ended;
};

BioView& view_of(BIO* bio) noexcept {
  return *static_cast<BioView*>(BIO_get_data(bio));
}

int bio_write(BIO* bio, const char* bytes, int size) noexcept {
  const auto& view = view_of(bio);
  BIO_clear_retry_flags(bio);
  if (view.outgoing != nullptr) return append(*view.outgoing, bytes, size);
  const auto sent = ::send(view.fd, bytes, static_cast<std::size_t>(size), view.flags);
  if (sent >= 0) return static_cast<int>(sent);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) BIO_set_retry_write(bio);
  return -1;
}

int bio_read(BIO* bio, char* out, int size) {
  const auto& view = view_of(bio);
  BIO_clear_retry_flags(bio);
  if (view.incoming->empty()) {
    if (*view.ended) return 0;
    BIO_set_retry_read(bio);
    return -1;
  }
  const auto count = std::min(static_cast<std::size_t>(size), view.incoming->size());
  std::memcpy(out, view.incoming->data(), count);
  view.incoming->remove_prefix(count);
  return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return *view_of(bio).ended ? 1 : 0;
  return 0;
}

int bio_destroy(BIO* bio) {
  delete &view_of(bio);
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

Stream::Tls::Tls(SSL_CTX* context, int socket) {
  auto view =
      std::make_unique<BioView>(BioView{socket, &incoming, &outgoing, MSG_NOSIGNAL | MSG_DONTWAIT, &ended});
  BIO* bio = BIO_new(bio_method());
  if (bio != nullptr) ssl = SSL_new(context);
  if (ssl == nullptr) {
    BIO_free(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, view.release());
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_accept_state(ssl);
}

// Requires that the server's certificate contains the name. Also sends the name as SNI, unless it is an IP
// address (RFC 6066 §3).
Stream::Tls::Tls(const TlsTarget& target, int socket) : Tls(target.context, socket) {
  SSL_set_connect_state(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), target.name.c_str()) != 1) {
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    // If a call fails, throws: without a host name, OpenSSL would accept any certificate of a trusted
    // authority.
    if (SSL_set1_host(ssl, target.name.c_str()) != 1 ||
        SSL_set_tlsext_host_name(ssl, target.name.c_str()) != 1)
      throw std::bad_alloc();
  }
  if (target.session != nullptr) SSL_set_session(ssl, target.session);
  ERR_clear_error();
}

void Stream::Tls::detach() noexcept {
  view_of(SSL_get_wbio(ssl)).fd = -1;
}

void Stream::Tls::write_close_notify() noexcept {
  auto& view = view_of(SSL_get_wbio(ssl));
  view.flags |= MSG_MORE;
  SSL_shutdown(ssl);
  view.flags &= ~MSG_MORE;
}

void Stream::Tls::forget_errors() noexcept {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

std::size_t Stream::Tls::seal(std::string_view bytes, bool& full, ErrorCode& ec) noexcept {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    forget_errors();
    const auto rest = std::min<std::size_t>(bytes.size() - sent, 1 << 30);
    const int result = SSL_write(ssl, bytes.data() + sent, static_cast<int>(rest));
    if (result <= 0) {
      const auto failure = meaning(result);
      full = failure == asio::error::would_block;
      if (!full) ec = failure;
      break;
    }
    sent += static_cast<std::size_t>(result);
  }
  return sent;
}

ErrorCode Stream::Tls::meaning(int result) const noexcept {
  // connection_aborted instead of eof, because eof may be the valid end of an answer
  if (idle.too_many()) return asio::error::connection_aborted;
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

// Returns true if a resumed session has no client certificate although weir requires one now. That session
// began before weir required certificates.
bool Stream::Tls::lacks_certificate() const noexcept {
  return (SSL_get_verify_mode(ssl) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT) != 0 &&
         SSL_get0_peer_certificate(ssl) == nullptr;
}

// Returns true if the client certificate of a resumed session has expired. OpenSSL checks certificates only
// in full handshakes, and a client can renew its ticket forever.
bool Stream::Tls::outlived_certificate() const noexcept {
  if (SSL_session_reused(ssl) == 0 || SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE) return false;
  const X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0) return false;
  SSL_set_verify_result(ssl, X509_V_ERR_CERT_HAS_EXPIRED);
  return true;
}

// Returns true if a certificate authority made this handshake to check a challenge (weir/net/challenges.hpp).
bool Stream::Tls::was_challenge() const noexcept {
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &chosen, &size);
  return std::string_view(reinterpret_cast<const char*>(chosen), size) == kAcmeTls;
}

ErrorCode Stream::Tls::admit() noexcept {
  view_of(SSL_get_wbio(ssl)).outgoing = nullptr;
  std::string().swap(outgoing);
  if (was_challenge()) return asio::error::eof;
  if (lacks_certificate()) return tls_error(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE);
  if (outlived_certificate()) return tls_error(SSL_R_CERTIFICATE_VERIFY_FAILED);
  idle.watch(ssl);
  return {};
}

// Reads all records that have arrived, so that the caller can forward them together: one long write costs
// less than a write for each record.
std::size_t Stream::read_records(char* at, std::size_t size, ErrorCode& ec) {
  ec = std::exchange(tls_->read_failure, {});
  std::size_t got = 0;
  while (!ec && got < size && (got == 0 || has_pending() || (port_ && port_->may_read())))
    got += read_record(at + got, size - got, ec);
  if (got > 0 && ec) {
    if (ec != asio::error::would_block) tls_->read_failure = ec;
    ec = {};
  }
  return got;
}

// Returns data of one TLS record: decrypts what has arrived, and reads from the socket if that is no whole
// record. Returns 0 only with an error.
std::size_t Stream::read_record(char* at, std::size_t size, ErrorCode& ec) {
  if (!has_pending() && !tls_->ended) ec = feed();  // OpenSSL has no data left, so read from the socket first
  if (ec) return 0;
  for (;;) {
    Tls::forget_errors();
    const int result = SSL_read(tls_->ssl, at, static_cast<int>(std::min<std::size_t>(size, 1 << 30)));
    if (result > 0) {
      tls_->idle.note_data();
      return static_cast<std::size_t>(result);
    }
    ec = tls_->meaning(result);
    if (ec != asio::error::would_block) return 0;
    ec = feed();
    if (ec) return 0;
  }
}

}  // namespace weir::net
