// Tests which OCSP responses weir staples: only responses about the right certificate, and only while they
// are valid.
#include "unit/net/tls.hpp"

#include "weir/net/stream.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ocsp.h>

namespace weir::net {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};
using Asn1 = std::unique_ptr<ASN1_TIME, Freed<ASN1_STRING_free>>;

class Stapling : public ::testing::Test {
 protected:
  Stapling() {
    const auto file = open(certificates.cert(), "r");
    certificate.reset(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
    const auto key_file = open(certificates.key(), "r");
    key.reset(PEM_read_PrivateKey(key_file.get(), nullptr, nullptr, nullptr));
    settings.certificates[0].ocsp = certificates.cert() + ".ocsp";
  }

  // Writes an OCSP response with the status "good", signed with the certificate's own key. `until`: how long
  // the response is valid from now on; nullopt: the response states no end.
  void respond(std::optional<std::chrono::seconds> until, long serial = 0) {
    std::unique_ptr<OCSP_BASICRESP, Freed<OCSP_BASICRESP_free>> said(OCSP_BASICRESP_new());
    auto id = std::unique_ptr<OCSP_CERTID, Freed<OCSP_CERTID_free>>(
        OCSP_cert_to_id(nullptr, certificate.get(), certificate.get()));
    ASN1_INTEGER* number = nullptr;
    OCSP_id_get0_info(nullptr, nullptr, nullptr, &number, id.get());
    if (serial != 0) ASN1_INTEGER_set(number, serial);
    const Asn1 from(X509_gmtime_adj(nullptr, -7200));
    const Asn1 next(until ? X509_gmtime_adj(nullptr, until->count()) : nullptr);
    OCSP_basic_add1_status(said.get(), id.get(), V_OCSP_CERTSTATUS_GOOD, 0, nullptr, from.get(), next.get());
    OCSP_basic_sign(said.get(), certificate.get(), key.get(), EVP_sha256(), nullptr, 0);
    const std::unique_ptr<OCSP_RESPONSE, Freed<OCSP_RESPONSE_free>> response(
        OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, said.get()));
    write(response.get());
  }
  void write(OCSP_RESPONSE* response) {
    unsigned char* bytes = nullptr;
    const int size = i2d_OCSP_RESPONSE(response, &bytes);
    write(std::string_view(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)));
    OPENSSL_free(bytes);
  }
  void write(std::string_view bytes) {
    std::fwrite(bytes.data(), 1, bytes.size(), open(settings.certificates[0].ocsp, "w").get());
  }

  // Returns the size of the OCSP response that a client receives in the handshake; -1 if the client receives
  // none.
  long stapled() {
    const auto tls = make_tls_context(settings).value();
    auto made = socket_pair();
    const Descriptor theirs = std::move(made.theirs);
    Stream stream(context.get_executor(), made.ours, tls.get());
    TlsClient client(theirs.number());
    SSL_set_tlsext_status_type(client.ssl(), TLSEXT_STATUSTYPE_ocsp);
    auto other = std::async(std::launch::async, [&] { return client.handshake(); });
    EXPECT_FALSE(run(context, stream.handshake()));
    EXPECT_TRUE(other.get());
    const unsigned char* bytes = nullptr;
    return SSL_get_tlsext_status_ocsp_resp(client.ssl(), &bytes);
  }
  std::string fault() {
    const auto made = make_tls_context(settings);
    return made ? "" : made.error().message;
  }

  static std::unique_ptr<FILE, decltype(&std::fclose)> open(const std::string& path, const char* how) {
    return {std::fopen(path.c_str(), how), std::fclose};
  }

  Certificates certificates;
  TlsSettings settings = certificates.settings();
  std::unique_ptr<X509, Freed<X509_free>> certificate;
  std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>> key;
  asio::io_context context{1};
};

TEST_F(Stapling, StaplesAValidResponse) {
  respond(1h);
  EXPECT_GT(stapled(), 0);
  const auto states = certificate_states(make_tls_context(settings).value().get());
  ASSERT_EQ(states.size(), 1U);
  ASSERT_TRUE(states[0].stapled_until);
  const auto left = *states[0].stapled_until - std::chrono::system_clock::now();
  EXPECT_GT(left, 59min);
  EXPECT_LE(left, 1h);
}

TEST_F(Stapling, StaplesAResponseWithoutNextUpdate) {
  respond(std::nullopt);
  EXPECT_GT(stapled(), 0);
}

TEST_F(Stapling, SkipsAnOutdatedResponseWithoutAnError) {
  respond(-1h);
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(stapled(), -1);
}

// After a renewal, the file may still have the response for the previous certificate, here serial number
// 4711.
TEST_F(Stapling, SkipsAResponseForAnotherCertificateWithoutAnError) {
  respond(1h, 4711);
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(stapled(), -1);
  EXPECT_FALSE(certificate_states(make_tls_context(settings).value().get())[0].stapled_until);
}

TEST_F(Stapling, ErrorNamesTheFaultyFile) {
  EXPECT_THAT(fault(), HasSubstr(settings.certificates[0].ocsp + "\" cannot be read"));
  write("no response");
  EXPECT_THAT(fault(), HasSubstr("is not one; expected an OCSP response in DER"));
  const std::unique_ptr<OCSP_RESPONSE, Freed<OCSP_RESPONSE_free>> later(
      OCSP_response_create(OCSP_RESPONSE_STATUS_TRYLATER, nullptr));
  write(later.get());
  EXPECT_THAT(fault(), HasSubstr("only an error of the authority"));
}

}  // namespace
}  // namespace weir::net
