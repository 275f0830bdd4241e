// A test certificate, and a TLS client that uses OpenSSL's blocking calls.
#pragma once

#include "unit/net/sockets.hpp"

#include "weir/net/tls_context.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace weir::net {

// The files cert.pem, key.pem and other.pem in a directory of their own. other.pem is the key of a different
// certificate.
class Certificates {
 public:
  Certificates() {
    std::string pattern = ::testing::TempDir() + "weir_tls_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const Key other(EVP_EC_gen("P-256"), EVP_PKEY_free);
    write_key(key.get(), this->key());
    write_key(other.get(), this->other_key());
    write_certificate(key.get());
  }
  ~Certificates() { std::filesystem::remove_all(directory_); }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  [[nodiscard]] std::string cert() const { return directory_ + "/cert.pem"; }
  [[nodiscard]] std::string key() const { return directory_ + "/key.pem"; }
  [[nodiscard]] std::string other_key() const { return directory_ + "/other.pem"; }
  [[nodiscard]] TlsSettings settings(TlsVersion least = TlsVersion::Tls12) const {
    return {.certificates = {{cert(), key()}}, .min_version = least};
  }

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using File = std::unique_ptr<FILE, decltype(&std::fclose)>;

  static void write_key(EVP_PKEY* key, const std::string& path) {
    const File file(std::fopen(path.c_str(), "w"), std::fclose);
    PEM_write_PrivateKey(file.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  }
  void write_certificate(EVP_PKEY* key) const {
    const std::unique_ptr<X509, decltype(&X509_free)> cert(X509_new(), X509_free);
    X509_gmtime_adj(X509_getm_notBefore(cert.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert.get()), 3600);
    X509_set_pubkey(cert.get(), key);
    X509_sign(cert.get(), key, EVP_sha256());
    const File file(std::fopen(this->cert().c_str(), "w"), std::fclose);
    PEM_write_X509(file.get(), cert.get());
  }

  std::string directory_;
};

// A TLS client for one connection over the descriptor `fd`. The client does not own `fd`. Every call blocks,
// so the client needs its own thread.
class TlsClient {
 public:
  explicit TlsClient(int fd, int most_version = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_client_method())), ssl_(nullptr, SSL_free) {
    SSL_CTX_set_security_level(context_.get(), 0);  // allows ciphers and keys of an outdated client
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), most_version);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd);
  }
  [[nodiscard]] bool handshake() { return SSL_connect(ssl_.get()) == 1; }
  [[nodiscard]] SSL* ssl() noexcept { return ssl_.get(); }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const int sent = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Receives until `most` bytes have arrived or SSL_read() fails. last_error() then returns the error.
  std::string receive(std::size_t most = ~std::size_t{0}) {
    std::string got;
    std::array<char, 16 << 10> piece{};
    while (got.size() < most) {
      const auto wanted = std::min(piece.size(), most - got.size());
      const int count = SSL_read(ssl_.get(), piece.data(), static_cast<int>(wanted));
      if (count <= 0) {
        last_error_ = SSL_get_error(ssl_.get(), count);
        break;
      }
      got.append(piece.data(), static_cast<std::size_t>(count));
    }
    return got;
  }
  [[nodiscard]] int last_error() const noexcept { return last_error_; }

 private:
  TlsContext context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  int last_error_ = SSL_ERROR_NONE;
};

}  // namespace weir::net
