// Tests the errors about unusable certificates and keys: which file is wrong, what is wrong with it, and how
// to correct it.
#include "weir/net/tls_files.hpp"

#include "unit/net/tls.hpp"

#include "weir/net/file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <sys/stat.h>

namespace weir::net {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string contents(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class TlsFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    const auto file = folder_.cert() + "." + name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  [[nodiscard]] static std::string of(const std::string& cert, const std::string& key) {
    const auto made = make_tls_context({.certificates = {{cert, key}}});
    return made ? "" : made.error().message;
  }
  [[nodiscard]] std::string of_cert(const std::string& cert) const { return of(cert, folder_.key()); }
  [[nodiscard]] std::string of_key(const std::string& key) const { return of(folder_.cert(), key); }

  Certificates folder_;
};

TEST_F(TlsFiles, ErrorAboutAnUnreadableFileHasTheSystemsReason) {
  const auto missing = folder_.cert() + ".missing";
  EXPECT_EQ(of_cert(missing),
            "the certificate \"" + missing + "\" cannot be read: No such file or directory");
  EXPECT_EQ(of_key(missing), "the key \"" + missing + "\" cannot be read: No such file or directory");
  EXPECT_EQ(of_key("/"), "the key \"/\" cannot be read: it is a directory, not a regular file");
}

TEST_F(TlsFiles, ErrorSaysThatCertificateAndKeyAreSwapped) {
  EXPECT_EQ(of_cert(folder_.key()),
            "the certificate \"" + folder_.key() +
                "\" contains a private key, not a certificate; are cert and key swapped?");
  EXPECT_EQ(of_key(folder_.cert()),
            "the key \"" + folder_.cert() +
                "\" contains a certificate, not a private key; are cert and key swapped?");
}

TEST_F(TlsFiles, ErrorSaysWhatAFileOfAnotherKindContains) {
  EXPECT_THAT(of_cert(write("empty", "")),
              EndsWith("\" is empty; expected a PEM file with -----BEGIN CERTIFICATE-----"));
  EXPECT_THAT(of_cert(write("text", "a")),
              EndsWith("\" is not a PEM file; expected one with -----BEGIN CERTIFICATE-----"));
  EXPECT_THAT(of_key(write("text", "a")),
              EndsWith("\" is not a PEM file; expected one with -----BEGIN PRIVATE KEY-----"));
  EXPECT_THAT(of_cert(write("der", "\x30\x82")),
              HasSubstr("\" is DER; expected PEM: convert it with openssl x509 -inform DER -in "));
  EXPECT_THAT(of_key(write("der", "\x30\x82")),
              HasSubstr("\" is DER; expected PEM: convert it with openssl pkey -inform DER -in "));
  EXPECT_THAT(of_key(write("public", "-----BEGIN PUBLIC KEY-----\n")),
              EndsWith("\" contains PUBLIC KEY; expected -----BEGIN PRIVATE KEY-----"));
  EXPECT_THAT(of_cert(write("broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")),
              HasSubstr("\" is rejected by OpenSSL: "));
}

TEST_F(TlsFiles, ErrorNamesAKeyThatBelongsToAnotherCertificate) {
  EXPECT_EQ(of_key(folder_.other_key()), "the key \"" + folder_.other_key() +
                                             "\" does not belong to the certificate \"" + folder_.cert() +
                                             "\"; expected the key of this certificate");
  const Certificates another;
  const auto chain = write("chain", contents(another.cert()) + contents(folder_.cert()));
  EXPECT_EQ(of_cert(chain),
            "the key \"" + folder_.key() + "\" does not belong to the certificate \"" + chain +
                "\", but to certificate 2 in that file; put the server's certificate first, then its chain");
}

TEST_F(TlsFiles, EncryptedKeyIsAnError) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const auto locked = folder_.cert() + ".locked";
  const std::unique_ptr<FILE, decltype(&std::fclose)> file(std::fopen(locked.c_str(), "w"), std::fclose);
  char phrase[] = "phrase";
  PEM_write_PKCS8PrivateKey(file.get(), key.get(), EVP_aes_128_cbc(), phrase, 6, nullptr, nullptr);
  std::fflush(file.get());
  EXPECT_THAT(of_key(locked),
              AllOf(StartsWith("the key \"" + locked + "\" is encrypted; store it without a pass phrase"),
                    HasSubstr("openssl pkey -in " + locked)));
}

TEST_F(TlsFiles, FileAboveTheMaximumSizeIsAnError) {
  const auto large = write("large", contents(folder_.key()));
  std::filesystem::resize_file(large, kLargestFile + 1);
  for (const auto& fault : {of_cert(large), of_key(large), fault_of_client_ca(large).value().message})
    EXPECT_THAT(fault, EndsWith("cannot be read: it is larger than 16 MiB, which is the most that is read"));
}

TEST_F(TlsFiles, PipeIsRejectedWithoutWaiting) {
  const auto pipe = folder_.cert() + ".pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto stapled = make_tls_context({.certificates = {{folder_.cert(), folder_.key(), pipe}}});
  for (const auto& fault :
       {of_cert(pipe), of_key(pipe), fault_of_client_ca(pipe).value().message, stapled.error().message})
    EXPECT_THAT(fault, EndsWith(".pipe\" cannot be read: it is a pipe, not a regular file"));
}

TEST_F(TlsFiles, CertificateFileMayContainTheChainAfterTheCertificate) {
  const Certificates another;
  const auto made =
      make_tls_context({.certificates = {{write("chain", contents(folder_.cert()) + contents(another.cert())),
                                          folder_.key()}}})
          .value();
  STACK_OF(X509)* chain = nullptr;
  ASSERT_EQ(SSL_CTX_get0_chain_certs(made.get(), &chain), 1);
  EXPECT_EQ(sk_X509_num(chain), 1);
  const auto broken = write("broken chain", contents(folder_.cert()) + "-----BEGIN CERTIFICATE-----\nAAAA\n");
  EXPECT_THAT(of_cert(broken), HasSubstr("is rejected by OpenSSL: "));
}

// A file with only revocation lists can verify no certificate.
TEST_F(TlsFiles, ErrorSaysWhatACaFileWithoutCertificatesContains) {
  EXPECT_THAT(fault_of_client_ca(write("list", "-----BEGIN X509 CRL-----\n")).value().message,
              EndsWith("contains X509 CRL; expected -----BEGIN CERTIFICATE-----"));
}

TEST_F(TlsFiles, NameOfTwoAuthoritiesWithTheSameNameIsSentToClientsOnce) {
  const Certificates another;  // another authority with the same subject
  auto settings = folder_.settings();
  settings.client_ca = write("authorities", contents(folder_.cert()) + contents(another.cert()));
  const auto made = make_tls_context(settings).value();
  EXPECT_EQ(sk_X509_NAME_num(SSL_CTX_get_client_CA_list(made.get())), 1);
}

TEST_F(TlsFiles, ErrorNamesAFaultyCaFile) {
  EXPECT_EQ(fault_of_client_ca(folder_.key()).value().message,
            "the file of client authorities \"" + folder_.key() +
                "\" contains a private key, not a certificate; expected the authority's certificate");
}

}  // namespace
}  // namespace weir::net
