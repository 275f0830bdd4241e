// Tests revocation lists: which files of lists weir accepts, and which clients they reject.
#include "weir/net/revocation_lists.hpp"

#include "unit/net/credential.hpp"
#include "unit/net/tls.hpp"

#include "weir/net/tls_files.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

namespace weir::net {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

using File = std::unique_ptr<FILE, decltype(&std::fclose)>;

class RevocationLists : public ::testing::Test {
 protected:
  RevocationLists() {
    std::string pattern = ::testing::TempDir() + "weir_crl_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    write_authorities({&authority_});
  }
  ~RevocationLists() override { std::filesystem::remove_all(directory_); }

  void write_authorities(const std::vector<const Credential*>& all) const {
    const File out(std::fopen(ca().c_str(), "w"), std::fclose);
    for (const auto* each : all) PEM_write_X509(out.get(), each->certificate.get());
  }

  // Appends to the file of lists a list of `issuer`, signed by `signer`. The list is valid until `until`, in
  // seconds from now.
  void append_list(const Credential& issuer, const Credential& signer,
                   const std::vector<const Credential*>& revoked, long until = kHour) const {
    const std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> list(X509_CRL_new(), X509_CRL_free);
    const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> time(ASN1_TIME_new(), ASN1_TIME_free);
    X509_CRL_set_version(list.get(), 1);
    X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(issuer.certificate.get()));
    X509_gmtime_adj(time.get(), -2 * kHour);
    X509_CRL_set1_lastUpdate(list.get(), time.get());
    X509_gmtime_adj(time.get(), until);
    X509_CRL_set1_nextUpdate(list.get(), time.get());
    for (const auto* each : revoked) {
      X509_REVOKED* entry = X509_REVOKED_new();
      X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(each->certificate.get()));
      X509_gmtime_adj(time.get(), -kHour);
      X509_REVOKED_set_revocationDate(entry, time.get());
      X509_CRL_add0_revoked(list.get(), entry);
    }
    X509_CRL_sign(list.get(), signer.key.get(), EVP_sha256());
    const File out(std::fopen(crl().c_str(), "a"), std::fclose);
    PEM_write_X509_CRL(out.get(), list.get());
  }

  // Verifies a client's certificate with the lists. Returns OpenSSL's code of the error; X509_V_OK if the
  // certificate is good.
  [[nodiscard]] int verdict_on(const Credential& client) const {
    const TlsContext context(SSL_CTX_new(TLS_server_method()));
    EXPECT_FALSE(take_authorities(context.get(), "authorities", ca()));
    EXPECT_FALSE(take_revocation_lists(context.get(), crl()));
    const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                                X509_STORE_CTX_free);
    X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context.get()), client.certificate.get(),
                        nullptr);
    X509_VERIFY_PARAM_set1(X509_STORE_CTX_get0_param(check.get()), SSL_CTX_get0_param(context.get()));
    X509_verify_cert(check.get());
    return X509_STORE_CTX_get_error(check.get());
  }

  [[nodiscard]] std::string fault() const {
    const auto error = fault_of_client_crl(ca(), crl());
    return error ? error->message : "";
  }
  // Returns a client's certificate with a serial number of its own.
  Credential client(long serial) const {
    auto made = make_credential({{"CN", "client"}}, &authority_);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate.get()), serial);
    X509_sign(made.certificate.get(), authority_.key.get(), EVP_sha256());
    return made;
  }
  [[nodiscard]] std::string ca() const { return directory_ + "/ca.pem"; }
  [[nodiscard]] std::string crl() const { return directory_ + "/crl.pem"; }

  const Credential authority_ = make_credential({{"CN", "Test CA"}}, nullptr);
  const Credential other_ = make_credential({{"CN", "Other CA"}}, nullptr);

 private:
  std::string directory_;
};

TEST_F(RevocationLists, RejectOnlyTheListedCertificates) {
  const auto good = client(7), revoked = client(8);
  append_list(authority_, authority_, {&revoked});
  EXPECT_EQ(verdict_on(good), X509_V_OK);
  EXPECT_EQ(verdict_on(revoked), X509_V_ERR_CERT_REVOKED);
}

TEST_F(RevocationLists, ExpiredListRejectsAllClientsOfItsAuthority) {
  append_list(authority_, authority_, {}, -kHour);
  EXPECT_EQ(fault(), "");  // weir only warns of the expired list
  EXPECT_EQ(verdict_on(client(7)), X509_V_ERR_CRL_HAS_EXPIRED);
}

TEST_F(RevocationLists, AuthorityWithoutAListIsAnError) {
  write_authorities({&authority_, &other_});
  append_list(authority_, authority_, {});
  EXPECT_EQ(fault(), "the file of revocation lists \"" + crl() +
                         "\" has no list of \"CN=Other CA\", so weir would reject all clients of this "
                         "authority; append its list");
  append_list(other_, other_, {});
  EXPECT_EQ(fault(), "");
}

TEST_F(RevocationLists, ListThatItsAuthorityDidNotSignIsAnError) {
  append_list(authority_, other_, {});
  EXPECT_THAT(fault(), EndsWith("has a list of \"CN=Test CA\" that this authority did not sign; expected the "
                                "list from the authority in client_ca"));
}

// While an authority replaces its key, clients may have certificates of the old or the new key. The file of
// authorities then has two authorities with the same name.
TEST_F(RevocationLists, TwoAuthoritiesWithTheSameNameEachNeedAList) {
  const auto successor = make_credential({{"CN", "Test CA"}}, nullptr);
  write_authorities({&authority_, &successor});
  append_list(authority_, authority_, {});
  EXPECT_THAT(fault(), HasSubstr("has a list of \"CN=Test CA\" that this authority did not sign"));
  append_list(successor, successor, {});
  EXPECT_EQ(fault(), "");
}

TEST_F(RevocationLists, ReportedExpiryIsTheEarliestExpiryOfAllLists) {
  write_authorities({&authority_, &other_});
  append_list(authority_, authority_, {}, 2 * kHour);
  append_list(other_, other_, {}, kHour);
  const TlsContext context(SSL_CTX_new(TLS_server_method()));
  EXPECT_FALSE(revocation_lists_end(context.get()));
  EXPECT_FALSE(take_authorities(context.get(), "authorities", ca()));
  EXPECT_FALSE(take_revocation_lists(context.get(), crl()));
  const auto end = revocation_lists_end(context.get());
  ASSERT_TRUE(end);
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  EXPECT_GT(*end, now);
  EXPECT_LE(*end, now + std::chrono::seconds(kHour));
}

TEST_F(RevocationLists, ErrorSaysWhatAFileWithoutListsContains) {
  const auto write = [this](const std::string& text) { std::ofstream(crl()) << text; };
  write("");
  EXPECT_THAT(fault(), EndsWith("is empty; expected a PEM file with -----BEGIN X509 CRL-----"));
  write("-----BEGIN CERTIFICATE-----\n");
  EXPECT_THAT(fault(), EndsWith("contains CERTIFICATE; expected -----BEGIN X509 CRL-----"));
  write("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n");
  EXPECT_THAT(fault(), HasSubstr("is rejected by OpenSSL: "));
  write("\x30\x82");
  EXPECT_THAT(fault(),
              EndsWith("is DER; expected PEM: convert it with openssl crl -inform DER -in " + crl()));
}

TEST_F(RevocationLists, BrokenListAfterAValidListIsAnError) {
  append_list(authority_, authority_, {});
  std::ofstream(crl(), std::ios::app) << "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n";
  EXPECT_THAT(fault(), HasSubstr("is rejected by OpenSSL: "));
}

}  // namespace
}  // namespace weir::net
