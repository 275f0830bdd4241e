#include "weir/acme/jws.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>

namespace weir::acme {
namespace {

namespace json = boost::json;

std::string decoded(std::string_view text) {
  std::string padded(text);
  for (char& c : padded) c = c == '-' ? '+' : c == '_' ? '/' : c;
  const auto missing = (4 - padded.size() % 4) % 4;
  padded.append(missing, '=');
  std::string bytes(padded.size(), '\0');
  EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                  reinterpret_cast<const unsigned char*>(padded.data()), static_cast<int>(padded.size()));
  bytes.resize(padded.size() / 4 * 3 - missing);
  return bytes;
}

// Verifies a signature of ES256 with OpenSSL.
bool verifies(const Key& key, const std::string& input, const std::string& signature) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG* halves = ECDSA_SIG_new();
  ECDSA_SIG_set0(halves, BN_bin2bn(bytes, 32, nullptr), BN_bin2bn(bytes + 32, 32, nullptr));
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(halves, &der);
  EVP_MD_CTX* digest = EVP_MD_CTX_new();
  const bool good = EVP_DigestVerifyInit(digest, nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
                    EVP_DigestVerify(digest, der, static_cast<std::size_t>(size),
                                     reinterpret_cast<const unsigned char*>(input.data()), input.size()) == 1;
  EVP_MD_CTX_free(digest);
  ECDSA_SIG_free(halves);
  OPENSSL_free(der);
  return good;
}

TEST(Base64Url, EncodesWithTheUrlSafeAlphabetAndWithoutPadding) {
  EXPECT_EQ(base64url(""), "");
  EXPECT_EQ(base64url("f"), "Zg");
  EXPECT_EQ(base64url("fo"), "Zm8");
  EXPECT_EQ(base64url("foo"), "Zm9v");
  EXPECT_EQ(base64url("\xfb\xff\xfe"), "-__-");
}

TEST(Jws, SignedRequestHasAValidSignatureAndNamesThePublicKeyOrTheAccountUrl) {
  const auto key = make_key();
  ASSERT_TRUE(key);
  // Repeats, because few signatures have a half that begins with a zero byte: 1 in 256 for each half.
  for (int i = 0; i < 50; ++i) {
    const auto text = sign(*key, {.nonce = "n\"1", .url = "https://a/b"}, R"({"x":1})");
    ASSERT_TRUE(text);
    const auto jws = json::parse(*text).as_object();
    const std::string first(jws.at("protected").as_string()), second(jws.at("payload").as_string());
    const auto signature = decoded(std::string(jws.at("signature").as_string()));
    ASSERT_EQ(signature.size(), 64U);
    EXPECT_TRUE(verifies(*key, first + "." + second, signature));
    EXPECT_FALSE(verifies(*key, first + "." + second + "A", signature));
    EXPECT_EQ(decoded(second), R"({"x":1})");
    const auto header = json::parse(decoded(first)).as_object();
    EXPECT_EQ(header.at("alg"), "ES256");
    EXPECT_EQ(header.at("nonce"), "n\"1");
    EXPECT_EQ(header.at("url"), "https://a/b");
    EXPECT_EQ(header.at("jwk"), json::parse(jwk_of(*key)));
    EXPECT_FALSE(header.contains("kid"));
  }
  const auto later = sign(*key, {.nonce = "n", .url = "https://a/b", .account = "https://a/acct/1"}, "");
  ASSERT_TRUE(later);
  const auto jws = json::parse(*later).as_object();
  EXPECT_EQ(jws.at("payload"), "");
  const auto header = json::parse(decoded(std::string(jws.at("protected").as_string()))).as_object();
  EXPECT_EQ(header.at("kid"), "https://a/acct/1");
  EXPECT_FALSE(header.contains("jwk"));
}

TEST(AccountKey, KeyAuthorizationHasTheThumbprintOfRfc7638) {
  const auto key = make_key();
  ASSERT_TRUE(key);
  EXPECT_EQ(key_authorization(*key, "token"), "token." + base64url(sha256(jwk_of(*key))));
  EXPECT_TRUE(jwk_of(*key).starts_with(R"({"crv":"P-256","kty":"EC","x":")"));
  EXPECT_EQ(decoded(std::string(json::parse(jwk_of(*key)).as_object().at("y").as_string())).size(), 32U);
}

TEST(FromBase64Url, DecodesTextsWithAndWithoutPadding) {
  EXPECT_EQ(from_base64url("-__-"), "\xfb\xff\xfe");
  EXPECT_EQ(from_base64url("Zm8"), "fo");
  EXPECT_EQ(from_base64url("Zm8="), "fo");
  EXPECT_EQ(from_base64url(""), "");
  for (const char* wrong : {"Zm8+", "Zm8/", "A", "Zm 8", "Zm8=x"})
    EXPECT_EQ(from_base64url(wrong), std::nullopt) << wrong;
}

TEST(BindAccount, SignsTheAccountKeyWithTheSecretOfTheExternalAccount) {
  const auto key = make_key();
  ASSERT_TRUE(key);
  const auto bound = json::parse(bind_account(*key, {"kid-1", "secret"}, "https://a/new")).as_object();
  const std::string first(bound.at("protected").as_string()), second(bound.at("payload").as_string());
  EXPECT_EQ(json::parse(decoded(first)),
            (json::value{{"alg", "HS256"}, {"kid", "kid-1"}, {"url", "https://a/new"}}));
  EXPECT_EQ(decoded(second), jwk_of(*key));
  EXPECT_EQ(decoded(std::string(bound.at("signature").as_string())).size(), 32U);
}

TEST(AccountKey, KeyIsReadBackFromPemAndAKeyOnAnotherCurveIsRejected) {
  const auto key = make_key();
  ASSERT_TRUE(key);
  const auto again = key_of_pem(to_pem(*key));
  ASSERT_TRUE(again);
  EXPECT_EQ(jwk_of(*again), jwk_of(*key));
  EXPECT_FALSE(key_of_pem("no key"));
  const Key other(EVP_EC_gen("P-384"));
  EXPECT_EQ(key_of_pem(to_pem(other)).error().message,
            "expected a private key on the curve P-256, without a pass phrase");
}

}  // namespace
}  // namespace weir::acme
