// Tests which certificate of a listener a client gets for a host name, and which certificates no client can
// get.
#include "net/certificate_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::net {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using All = std::vector<CertificateNames>;

constexpr int kRsa = EVP_PKEY_RSA, kEc = EVP_PKEY_EC, kEd = EVP_PKEY_ED25519;

TEST(CertificateNames, WildcardNameCoversExactlyOneLabel) {
  EXPECT_TRUE(covers("a.test", "a.test"));
  EXPECT_TRUE(covers("*.a.test", "b.a.test"));
  EXPECT_TRUE(covers("*.a.test", "*.a.test"));
  EXPECT_FALSE(covers("*.a.test", "a.test"));
  EXPECT_FALSE(covers("*.a.test", "c.b.a.test"));
  EXPECT_FALSE(covers("*.a.test", ".a.test"));
  EXPECT_FALSE(covers("b.a.test", "*.a.test")) << "a wildcard covers several labels";
  EXPECT_FALSE(covers("*.a.test", "*.b.a.test"));
  EXPECT_FALSE(covers("*.test", "a.test")) << "OpenSSL accepts no such wildcard";
}

TEST(CertificateNames, FallbackMustShareANameWithTheFirstCertificateAndHaveAnotherKeyType) {
  EXPECT_THAT(fallback_certificates(All{{kRsa, {"a.test"}}}), IsEmpty());
  EXPECT_THAT(fallback_certificates(All{{kRsa, {"a.test"}},
                                        {kEc, {"b.test"}},
                                        {kRsa, {"a.test"}},
                                        {kEc, {"*.a.test"}},
                                        {kEc, {"a.test"}},
                                        {kEd, {"x.test", "a.test"}}}),
              ElementsAre(4, 5));
  EXPECT_THAT(fallback_certificates(All{{kRsa, {}, {"1234"}}, {kEc, {"a.test"}}, {kEc, {}, {"1234"}}}),
              ElementsAre(2));
}

TEST(CertificateNames, CertificateIsNeverPresentedIfEarlierCertificatesHaveAllItsNames) {
  const auto behind = [](const All& all) { return find_hidden(all).back()->behind; };
  EXPECT_EQ(behind({{kRsa, {"a.test"}}, {kRsa, {"a.test"}}}), 0U);
  EXPECT_EQ(behind({{kRsa, {"x.test"}}, {kRsa, {"*.a.test"}}, {kRsa, {"b.a.test", "x.test"}}}), 1U);
  EXPECT_EQ(behind({{kEc, {"x.test"}}, {kRsa, {"b.test"}}, {kRsa, {"b.test"}}}), 1U);
  EXPECT_EQ(behind({{kEc, {"x.test"}}, {kEc, {}}}), std::nullopt) << "no client requests this certificate";
}

TEST(CertificateNames, CertificateWithAnotherKeyTypeOrNameCanBePresented) {
  const auto can_be_shown = [](const All& all) { return !find_hidden(all).back(); };
  EXPECT_TRUE(can_be_shown({{kRsa, {}}})) << "the first certificate is the default";
  EXPECT_TRUE(can_be_shown({{kRsa, {"a.test"}}, {kEc, {"a.test"}}}));
  EXPECT_TRUE(can_be_shown({{kRsa, {"a.test"}}, {kRsa, {"a.test", "b.test"}}}));
  EXPECT_TRUE(can_be_shown({{kRsa, {"b.a.test"}}, {kRsa, {"*.a.test"}}}));
  EXPECT_TRUE(can_be_shown({{kRsa, {}, {"1234"}}, {kEc, {}, {"1234"}}}))
      << "the certificate is the default of its key type";
}

}  // namespace
}  // namespace weir::net
