// Tests client certificates: which certificates weir trusts, the form of their subject, and the errors about
// untrusted certificates.
#include "unit/net/credential.hpp"
#include "unit/net/tls.hpp"

#include "weir/net/stream.hpp"

#include <chrono>
#include <ctime>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

using ::testing::HasSubstr;

class ClientCertificate : public ::testing::Test {
 protected:
  // Makes weir ask for client certificates that `authority` signed.
  void ask(ClientAuth auth) {
    const auto file = folder.cert() + ".ca";
    const std::unique_ptr<FILE, decltype(&std::fclose)> out(std::fopen(file.c_str(), "w"), std::fclose);
    PEM_write_X509(out.get(), authority.certificate.get());
    std::fflush(out.get());
    auto settings = folder.settings();
    settings.client_ca = file;
    settings.client_auth = auth;
    tls = make_tls_context(settings, tickets).value();
  }

  // Makes one connection and returns weir's error. If `session` is set, the client offers to resume it.
  ErrorCode connect(const Credential* shown, int version = TLS1_3_VERSION, SSL_SESSION* session = nullptr) {
    auto made = socket_pair();
    const Descriptor theirs = std::move(made.theirs);
    stream.emplace(context.get_executor(), made.ours, tls.get());
    TlsClient client(theirs.number(), version);
    if (shown != nullptr) {
      SSL_use_certificate(client.ssl(), shown->certificate.get());
      SSL_use_PrivateKey(client.ssl(), shown->key.get());
    }
    if (session != nullptr) SSL_set_session(client.ssl(), session);
    auto other = std::async(std::launch::async, [&] {
      if (client.handshake()) client.receive(2);
    });
    const auto ec = run(context, stream->handshake());
    ErrorCode ignored;
    // In TLS 1.3, the server sends session tickets after the handshake, before these bytes. A client that has
    // received the bytes has the tickets, too.
    if (!ec) (void)stream->try_write("ok", {}, ignored);
    ::shutdown(made.ours, SHUT_WR);
    other.get();
    SSL_shutdown(client.ssl());  // without this call, the session cannot be resumed
    resumed = SSL_session_reused(client.ssl()) == 1;
    kept.reset(SSL_get1_session(client.ssl()));
    return ec;
  }

  Certificates folder;
  Credential authority = make_credential({{"CN", "Test CA"}}, nullptr);
  TlsContext tls;
  std::shared_ptr<TicketKeys> tickets = std::make_shared<TicketKeys>(std::chrono::hours(1));
  asio::io_context context{1};
  std::optional<Stream> stream;
  bool resumed = false;
  std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> kept{nullptr, SSL_SESSION_free};
};

TEST_F(ClientCertificate, SubjectIsWrittenInTheOrderOfRfc4514) {
  const std::pair<Subject, std::string> cases[] = {
      {{{"CN", "billing"}}, "CN=billing"},
      {{{"O", "Example"}, {"OU", "Ops"}, {"CN", "billing"}}, "CN=billing,OU=Ops,O=Example"},
      {{{"CN", "a,b+c\"d\\e"}}, R"(CN=a\,b\+c\"d\\e)"},
      {{{"CN", "Zürich\n"}}, R"(CN=Z\C3\BCrich\0A)"},
      {{}, ""}};
  ask(ClientAuth::Require);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION})
    for (const auto& [subject, told] : cases) {
      const auto shown = make_credential(subject, &authority);
      const auto ec = connect(&shown, version);
      EXPECT_FALSE(ec) << ec.message();
      EXPECT_EQ(stream->peer_subject(), told);
    }
}

TEST_F(ClientCertificate, UntrustedOrExpiredCertificateIsRejectedWithTheReason) {
  const auto other = make_credential({{"CN", "Other CA"}}, nullptr);
  const std::pair<Credential, std::string> cases[] = {
      {make_credential({{"CN", "a"}}, &other), "unable to get local issuer certificate"},
      {make_credential({{"CN", "a"}}, nullptr), "self-signed certificate"},
      {make_credential({{"CN", "a"}}, &authority, -2 * kHour, -kHour), "certificate has expired"},
      {make_credential({{"CN", "a"}}, &authority, kHour, 2 * kHour), "certificate is not yet valid"}};
  for (const auto auth : {ClientAuth::Require, ClientAuth::Optional}) {
    ask(auth);
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION})
      for (const auto& [shown, reason] : cases) {
        const auto ec = connect(&shown, version);
        EXPECT_TRUE(ec);
        EXPECT_EQ(stream->rejection_reason(ec), reason);
        EXPECT_EQ(stream->peer_subject(), "");
      }
  }
}

TEST_F(ClientCertificate, ClientWithoutACertificateIsRejectedOnlyIfCertificatesAreRequired) {
  ask(ClientAuth::Require);
  const auto ec = connect(nullptr);
  EXPECT_TRUE(ec);
  EXPECT_EQ(stream->rejection_reason(ec), "it presents no certificate");
  ask(ClientAuth::Optional);
  EXPECT_FALSE(connect(nullptr));
  EXPECT_EQ(stream->peer_subject(), "");
}

TEST_F(ClientCertificate, ClientHasNoSubjectIfTheServerRequestsNoCertificate) {
  tls = make_tls_context(folder.settings()).value();
  const auto shown = make_credential({{"CN", "a"}}, &authority);
  EXPECT_FALSE(connect(&shown));
  EXPECT_EQ(stream->peer_subject(), "");
}

// Returns the certificate as RFC 9440 writes it. Encodes by OpenSSL's base64 filter (BIO_f_base64), because
// weir uses EVP_EncodeBlock() and the test must not share its errors.
std::string client_cert(const Credential& shown) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> filter(
      BIO_push(BIO_new(BIO_f_base64()), BIO_new(BIO_s_mem())), BIO_free_all);
  BIO_set_flags(filter.get(), BIO_FLAGS_BASE64_NO_NL);
  i2d_X509_bio(filter.get(), shown.certificate.get());
  (void)BIO_flush(filter.get());
  char* text = nullptr;
  const auto size = BIO_get_mem_data(BIO_next(filter.get()), &text);
  return ":" + std::string(text, static_cast<std::size_t>(size)) + ":";
}

// The names have different lengths, so that the base64 texts have padding of each possible length (0 to 2).
TEST_F(ClientCertificate, CertificateIsWrittenAsRfc9440Says) {
  for (const char* name : {"a", "ab", "abc"}) {
    const auto shown = make_credential({{"CN", name}}, &authority);
    ask(ClientAuth::Optional);
    ASSERT_FALSE(connect(&shown));
    EXPECT_EQ(stream->peer_certificate(), client_cert(shown));
  }
  ASSERT_FALSE(connect(nullptr));
  EXPECT_EQ(stream->peer_certificate(), "");
  tls = make_tls_context(folder.settings()).value();
  const auto shown = make_credential({{"CN", "a"}}, &authority);
  ASSERT_FALSE(connect(&shown));
  EXPECT_EQ(stream->peer_certificate(), "") << "weir did not ask for a certificate";
}

TEST_F(ClientCertificate, ResumedSessionKeepsTheSubject) {
  const auto shown = make_credential({{"CN", "billing"}}, &authority);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ask(ClientAuth::Require);
    ASSERT_FALSE(connect(&shown, version));
    ASSERT_FALSE(resumed);
    const auto session = std::move(kept);
    ASSERT_FALSE(connect(nullptr, version, session.get()));
    EXPECT_TRUE(resumed) << version;
    EXPECT_EQ(stream->peer_subject(), "CN=billing");
    EXPECT_EQ(stream->peer_certificate(), client_cert(shown));
  }
}

// A reload keeps the ticket keys, so the server can still decrypt old tickets.
TEST_F(ClientCertificate, SessionWithoutACertificateIsNotResumedAfterCertificatesBecomeRequired) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ask(ClientAuth::Optional);
    ASSERT_FALSE(connect(nullptr, version));
    const auto session = std::move(kept);
    ASSERT_FALSE(connect(nullptr, version, session.get()));
    ASSERT_TRUE(resumed);
    ask(ClientAuth::Require);
    const auto ec = connect(nullptr, version, session.get());
    EXPECT_FALSE(resumed) << version;
    EXPECT_EQ(stream->rejection_reason(ec), "it presents no certificate");
  }
}

// If a certificate is required, the server must reject a resumed session without one even if its ticket is
// valid.
TEST_F(ClientCertificate, ResumedSessionWithoutTheRequiredCertificateIsRejected) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ask(ClientAuth::Optional);
    ASSERT_FALSE(connect(nullptr, version));
    const auto session = std::move(kept);
    SSL_CTX_set_verify(tls.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    const auto ec = connect(nullptr, version, session.get());
    EXPECT_TRUE(resumed) << version;
    EXPECT_EQ(stream->rejection_reason(ec), "it presents no certificate");
  }
}

// The first handshake runs with an earlier clock, at which the certificate was valid. The certificate has
// expired since.
TEST_F(ClientCertificate, SessionIsNotResumedAfterItsCertificateExpired) {
  const auto shown = make_credential({{"CN", "billing"}}, &authority, -kHour, -60);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ask(ClientAuth::Require);
    X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(tls.get()), std::time(nullptr) - kHour / 2);
    (void)connect(&shown, version);
    const auto session = std::move(kept);
    ASSERT_NE(session, nullptr);
    const auto ec = connect(nullptr, version, session.get());
    EXPECT_TRUE(resumed) << version;
    EXPECT_EQ(stream->rejection_reason(ec), "certificate has expired");
  }
}

TEST_F(ClientCertificate, HandshakeWithPlainTextIsNotReportedAsACertificateError) {
  ask(ClientAuth::Require);
  auto made = socket_pair();
  stream.emplace(context.get_executor(), made.ours, tls.get());
  send_all(made.theirs.number(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto ec = run(context, stream->handshake());
  EXPECT_TRUE(ec);
  EXPECT_EQ(stream->rejection_reason(ec), "");
}

TEST(ClientCa, ErrorNamesTheFaultyClientCaFile) {
  const Certificates folder;
  EXPECT_FALSE(fault_of_client_ca(folder.cert()));
  for (const auto& file : {folder.cert() + ".missing", folder.key()}) {
    const auto fault = fault_of_client_ca(file);
    ASSERT_TRUE(fault);
    EXPECT_THAT(fault->message, HasSubstr("the file of client authorities \"" + file + "\""));
    auto settings = folder.settings();
    settings.client_ca = file;
    EXPECT_FALSE(make_tls_context(settings));
  }
}

}  // namespace
}  // namespace weir::net
