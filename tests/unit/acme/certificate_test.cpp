#include "weir/acme/certificate.hpp"

#include "weir/net/challenges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace weir::acme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The certificate of the example in RFC 9773 §4.1 and appendix A.
constexpr const char* kRfc9773 =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt\n"
    "cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS\n"
    "BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu\n"
    "7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf\n"
    "qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B\n"
    "yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb\n"
    "+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK\n"
    "-----END CERTIFICATE-----\n";

TEST(CertificateInfo, ComputesTheRenewalIdThatRfc9773GivesForItsExample) {
  const auto info = read_certificate(kRfc9773);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->ari_id, "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
  EXPECT_FALSE(info->is_placeholder);
}

TEST(Placeholder, CertificateHasTheNamesAndIsRecognisedAsAPlaceholder) {
  const auto pem = make_placeholder({"b.example", "a.example"});
  ASSERT_TRUE(pem);
  const auto info = read_certificate(*pem);
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->is_placeholder);
  EXPECT_THAT(info->names, ElementsAre("a.example", "b.example"));
  EXPECT_EQ(info->ari_id, "");
  EXPECT_EQ(info->validity.not_after - info->validity.not_before,
            std::chrono::days(365) + std::chrono::hours(1));
  EXPECT_TRUE(key_of_pem(*pem));
}

TEST(SigningRequest, RequestForACertificateListsAllNamesAndIsSignedWithItsKey) {
  const auto key = make_key();
  ASSERT_TRUE(key);
  const auto der = make_signing_request(*key, {"www.example.com", "example.com"});
  ASSERT_TRUE(der);
  const auto* at = reinterpret_cast<const unsigned char*>(der->data());
  X509_REQ* request = d2i_X509_REQ(nullptr, &at, static_cast<long>(der->size()));
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(X509_REQ_verify(request, key->get()), 1);
  BIO* text = BIO_new(BIO_s_mem());
  X509_REQ_print(text, request);
  char* words = nullptr;
  const auto size = BIO_get_mem_data(text, &words);
  EXPECT_THAT(std::string(words, static_cast<std::size_t>(size)),
              HasSubstr("DNS:www.example.com, DNS:example.com"));
  BIO_free(text);
  X509_REQ_free(request);
}

TEST(ChallengeCertificate, CertificateHasTheNameAndACriticalExtensionWithTheDigestOfTheProof) {
  const auto pem = make_challenge_certificate("a.example", "token.thumb");
  ASSERT_TRUE(pem);
  EXPECT_THAT(read_certificate(*pem)->names, ElementsAre("a.example"));
  BIO* source = BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size()));
  X509* certificate = PEM_read_bio_X509(source, nullptr, nullptr, nullptr);
  ASSERT_NE(certificate, nullptr);
  ASN1_OBJECT* oid = OBJ_txt2obj("1.3.6.1.5.5.7.1.31", 1);
  const int at = X509_get_ext_by_OBJ(certificate, oid, -1);
  ASSERT_GE(at, 0);
  X509_EXTENSION* proof = X509_get_ext(certificate, at);
  EXPECT_EQ(X509_EXTENSION_get_critical(proof), 1);
  const auto* value = X509_EXTENSION_get_data(proof);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                        static_cast<std::size_t>(ASN1_STRING_length(value))),
            std::string("\x04\x20", 2) + sha256("token.thumb"));
  ASN1_OBJECT_free(oid);
  X509_free(certificate);
  BIO_free(source);
  EXPECT_TRUE(net::make_challenge_context(*pem));
  EXPECT_FALSE(net::make_challenge_context("no certificate"));
}

TEST(FaultInChain, RejectsAnAuthoritysCertificateForAnotherKeyOrForOtherNames) {
  const auto pem = make_placeholder({"a.example"});
  ASSERT_TRUE(pem);
  const auto own = key_of_pem(*pem), other = make_key();
  EXPECT_EQ(fault_in_chain(*pem, *own, {"a.example"}), "");
  EXPECT_EQ(fault_in_chain(*pem, *other, {"a.example"}), "the authority's certificate is for another key");
  EXPECT_EQ(fault_in_chain(*pem, *own, {"a.example", "b.example"}),
            "the authority's certificate is for other names");
  EXPECT_EQ(fault_in_chain(*pem + kRfc9773, *own, {"a.example"}), "");
  EXPECT_EQ(fault_in_chain(*pem + std::string(kRfc9773).substr(0, 200), *own, {"a.example"}),
            "the authority sent a chain with a broken certificate");
  EXPECT_EQ(fault_in_chain("<html>", *own, {"a.example"}), "the authority sent no certificate");
}

TEST(FaultInName, AcceptsFullyQualifiedHostNames) {
  for (const char* good : {"example.com", "a.b-c.example", "xn--bcher-kva.example", "1.example"})
    EXPECT_EQ(fault_in_name(good), "") << good;
}

TEST(FaultInName, RejectsWildcardsAddressesAndInvalidHostNames) {
  EXPECT_THAT(fault_in_name("*.example.com"), HasSubstr("is a wildcard"));
  EXPECT_THAT(fault_in_name("Example.com"), HasSubstr("capital letters"));
  for (const std::string wrong : {"", "localhost", "127.0.0.1", "[::1]", "a..b", ".a.b", "a.b.", "-a.b",
                                  "a-.b", "a b.c", "a_b.c", "a/../b.c", "b\xc3\xbc.example", "a,dns:b.c"})
    EXPECT_THAT(fault_in_name(wrong), HasSubstr("is no host name")) << wrong;
  EXPECT_THAT(fault_in_name(std::string(64, 'a') + ".b"), HasSubstr("is no host name"));
}

}  // namespace
}  // namespace weir::acme
