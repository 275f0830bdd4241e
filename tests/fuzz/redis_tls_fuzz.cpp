// Fuzzes the TLS codec for Redis with the TLS records of a real server. The records arrive in pieces,
// damaged, or followed by other bytes. Decrypted bytes must always be a prefix of what the server wrote. Each
// input must end in an error, or in a wait for more bytes.
#include "fuzz/input.hpp"
#include "redis/connection/tls.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace weir::fuzz {
namespace {

using redis::TlsCodec;

constexpr std::size_t kMostSteps = 64;

// Returns a server's TLS context with a self-signed certificate.
SSL_CTX* server_context() {
  static SSL_CTX* const kContext = [] {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86'400);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    SSL_CTX* context = SSL_CTX_new(TLS_server_method());
    require(SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1,
            "a server has a certificate");
    X509_free(certificate);
    EVP_PKEY_free(key);
    return context;
  }();
  return kContext;
}

SSL* new_client(bool tls12) {
  static SSL_CTX* const kContext = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(kContext);
  if (tls12) SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
  return ssl;
}

class Pair {
 public:
  explicit Pair(bool tls12) : codec_(new_client(tls12)), server_(SSL_new(server_context())) {
    SSL_set_bio(server_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(server_);
  }
  ~Pair() { SSL_free(server_); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void step(Input& in) {
    switch (in.byte() % 6) {
      case 0:
        return server_writes(in.between(1, 20'000));
      case 1:
        return deliver(in.between(1, 40'000));
      case 2:
        damaged_ = !to_client_.empty();
        if (damaged_)
          to_client_[in.between(0, to_client_.size() - 1)] ^= static_cast<char>(1 << in.byte() % 8);
        return;
      case 3:
        damaged_ = true;
        for (auto count = in.byte() % 32; count > 0; --count) to_client_ += static_cast<char>(in.byte());
        return;
      case 4:
        if (shaken_) codec_.seal(std::string(in.between(0, 4'000), 'c'));
        return talk();
      default:
        return deliver(to_client_.size());
    }
  }

 private:
  // Sends the codec's output to the server. Keeps the server's reply for deliver().
  void talk() {
    auto& sealed = codec_.sealed();
    require(sealed.size() < (1U << 20), "what is to be sent is bounded");
    BIO_write(SSL_get_rbio(server_), sealed.data(), static_cast<int>(sealed.size()));
    sealed.clear();
    std::array<char, 4096> scratch;
    if (SSL_is_init_finished(server_) == 0)
      (void)SSL_do_handshake(server_);
    else
      while (SSL_read(server_, scratch.data(), static_cast<int>(scratch.size())) > 0) {
      }
    collect();
  }
  void collect() {
    std::array<char, 4096> piece;
    for (int n = 0; (n = BIO_read(SSL_get_wbio(server_), piece.data(), piece.size())) > 0;)
      to_client_.append(piece.data(), static_cast<std::size_t>(n));
  }
  void server_writes(std::size_t size) {
    if (SSL_is_init_finished(server_) == 0) return talk();
    std::string text(size, '\0');
    for (auto& c : text) c = static_cast<char>(next_++ % 251);
    if (SSL_write(server_, text.data(), static_cast<int>(text.size())) > 0) written_ += text;
    collect();
  }
  void deliver(std::size_t size) {
    const auto piece = to_client_.substr(0, size);
    to_client_.erase(0, piece.size());
    if (!piece.empty()) codec_.feed(piece);
    if (!shaken_ && !failed_) handshake();
    if (shaken_ && !failed_) open_all();
    if (!failed_) talk();
  }
  void handshake() {
    const auto state = codec_.handshake();
    shaken_ = state == TlsCodec::HandshakeResult::Done;
    failed_ = state == TlsCodec::HandshakeResult::Failed;
    require(!failed_ || !codec_.why().empty(), "a failure says why");
    require(!failed_ || damaged_, "an honest server's handshake succeeds");
  }
  void open_all() {
    std::array<char, 8192> piece;
    for (;;) {
      const auto n = codec_.open(piece.data(), piece.size(), failed_);
      if (n == 0) break;
      const std::string_view opened(piece.data(), n);
      require(std::string_view(written_).substr(opened_, n) == opened,
              "what is opened is what the server wrote, in order");
      opened_ += n;
    }
    require(!failed_ || !codec_.why().empty(), "an end says why");
  }

  TlsCodec codec_;
  SSL* server_;
  std::string to_client_, written_;
  std::size_t opened_ = 0;
  unsigned next_ = 0;
  bool shaken_ = false, failed_ = false, damaged_ = false;
};

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::Input in(bytes, size);
  weir::fuzz::Pair pair(in.byte() % 2 == 1);
  for (std::size_t steps = 0; in.left() != 0 && steps < weir::fuzz::kMostSteps; ++steps) pair.step(in);
  return 0;
}
