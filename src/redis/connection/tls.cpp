#include "redis/connection/tls.hpp"

#include "weir/base/ip_address.hpp"
#include "weir/net/tls_client_files.hpp"
#include "weir/net/tls_files.hpp"

#include <array>
#include <system_error>
#include <utility>

#include <openssl/err.h>
#include <openssl/x509v3.h>

namespace weir::redis {

namespace {

// Returns the first error in OpenSSL's queue, which is the closest to the cause.
std::string first_fault() {
  const auto code = ERR_peek_error();
  const char* reason = ERR_reason_error_string(code);
  std::string text = reason != nullptr ? reason : "an unnamed error";
  if (ERR_SYSTEM_ERROR(code)) text = std::generic_category().message(ERR_GET_REASON(code));
  ERR_clear_error();
  return text;
}

base::Result<net::TlsContext> make_context(const TlsSettings& settings) {
  ERR_clear_error();
  net::TlsContext context(SSL_CTX_new(TLS_client_method()));
  if (!context) return base::Error{"TLS: " + first_fault()};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), settings.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (settings.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (auto error = net::take_authorities(context.get(), "the file of authorities", settings.ca)) {
    return *std::move(error);
  }
  if (settings.cert.empty()) return context;
  if (auto error = net::take_certificate(context.get(), settings.cert)) return *std::move(error);
  if (auto error = net::take_private_key(context.get(), settings.key, settings.cert))
    return *std::move(error);
  return context;
}

// Sets the name that the server's certificate must have. An IP address is compared as an address and never
// sent as SNI (RFC 6125 §6.4, RFC 6066 §3).
bool expect(SSL* ssl, const std::string& name) {
  if (base::IpAddress::parse(name))
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  return SSL_set1_host(ssl, name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
}

// Returns true if the byte can begin a TLS record, as a content type (RFC 8446 §5.1).
bool begins_record(char byte) noexcept {
  return byte >= 20 && byte <= 24;
}

}  // namespace

std::optional<base::Error> fault_of(const TlsSettings& settings) {
  auto made = make_context(settings);
  return made ? std::nullopt : std::optional(made.error());
}

net::FileStamps TlsClient::stamps() const {
  return net::stamps_of(
      {.ca = settings_.ca, .cert = settings_.cert, .key = settings_.key, .verify = settings_.verify});
}

base::Result<SSL*> TlsClient::begin(const std::string& host) {
  if (auto now = stamps(); !context_ || now != read_) {
    auto made = make_context(settings_);
    if (!made && !context_) return made.error();
    if (made) {
      context_ = *std::move(made);
      read_ = std::move(now);
    }
  }
  SSL* ssl = SSL_new(context_.get());
  const auto& name = settings_.server_name.empty() ? host : settings_.server_name;
  if (ssl != nullptr && expect(ssl, name)) return ssl;
  SSL_free(ssl);
  return base::Error{"TLS: " + first_fault()};
}

TlsCodec::TlsCodec(SSL* ssl) : ssl_(ssl), idle_(std::make_unique<net::IdleRecords>()) {
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl);
}

TlsCodec::HandshakeResult TlsCodec::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  const int error = SSL_get_error(ssl_.get(), done);
  if (done != 1 && (error != SSL_ERROR_WANT_READ || foreign_)) note_fault();
  drain();
  if (done == 1) idle_->watch(ssl_.get());
  if (done == 1) return HandshakeResult::Done;
  return error == SSL_ERROR_WANT_READ && !foreign_ ? HandshakeResult::More : HandshakeResult::Failed;
}

void TlsCodec::note_fault() {
  const auto verdict = SSL_get_verify_result(ssl_.get());
  if (foreign_)
    why_ = "the peer does not speak TLS";
  else if (verdict != X509_V_OK)
    why_ = std::string("its certificate is not trusted: ") + X509_verify_cert_error_string(verdict);
  else
    why_ = "TLS: " + first_fault();
  ERR_clear_error();
}

void TlsCodec::drain() {
  BIO* out = SSL_get_wbio(ssl_.get());
  std::array<char, 4096> piece;
  for (int n = 0; (n = BIO_read(out, piece.data(), piece.size())) > 0;)
    sealed_.append(piece.data(), static_cast<std::size_t>(n));
}

void TlsCodec::feed(std::string_view sealed) {
  if (!std::exchange(fed_, true) && !sealed.empty()) foreign_ = !begins_record(sealed.front());
  BIO_write(SSL_get_rbio(ssl_.get()), sealed.data(), static_cast<int>(sealed.size()));
}

std::size_t TlsCodec::open(char* at, std::size_t size, bool& ended) {
  ERR_clear_error();
  std::size_t n = 0;
  const int done = SSL_read_ex(ssl_.get(), at, size, &n);
  ended = false;
  if (done == 1) {
    idle_->note_data();
    return n;
  }
  const int error = SSL_get_error(ssl_.get(), done);
  if (error == SSL_ERROR_WANT_READ) return 0;
  ended = true;
  if (idle_->too_many())
    why_ = "it sends empty TLS records";
  else if (error == SSL_ERROR_ZERO_RETURN)
    why_ = "it closed the connection";
  else
    note_fault();
  return 0;
}

// Encrypts `plain`. Writing never fails, because the output is a memory buffer that accepts all bytes.
void TlsCodec::seal(std::string_view plain) {
  ERR_clear_error();
  std::size_t n = 0;
  if (!plain.empty()) (void)SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &n);
  drain();
}

}  // namespace weir::redis
