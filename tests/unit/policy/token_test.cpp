#include "weir/policy/token.hpp"

#include "unit/policy/sample.hpp"
#include "unit/policy/token_sample.hpp"

#include <memory>

#include <gtest/gtest.h>
#include <jwt.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace weir::policy {
namespace {

using namespace std::chrono_literals;

const std::string kSecret = "a secret of more than thirty-two octets";
constexpr base::TimePoint kNow{1'700'000'000s};

TokenVerifier verifier(TokenSettings settings = {"HS256", kSecret, {}, {}}) {
  auto made = TokenVerifier::make(std::move(settings));
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

bool accepted(const TokenVerifier& verifier, const std::string& token, base::TimePoint now = kNow) {
  Claims claims;
  const bool good = verifier.verify(token, now, claims);
  EXPECT_EQ(claims.find("sub").empty(), !good) << token;  // every token here has one
  return good;
}

// RFC 7515 appendix A.1, a token that others made.
TEST(Token, OfTheStandard) {
  std::string key(66, '\0');
  const std::string_view text =
      "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ+EstJQLr/T+1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow==";
  ASSERT_EQ(
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(key.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size())),
      66);
  key.resize(64);  // without what the padding stands for
  const auto of_standard = verifier({"HS256", key, {}, {}});
  const std::string token =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGx"
      "lLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  Claims claims;
  const base::TimePoint expiry{1'300'819'380s};
  EXPECT_FALSE(of_standard.verify(token, expiry, claims));
  EXPECT_TRUE(of_standard.verify(token, expiry - 1us, claims));
  EXPECT_EQ(claims.find("iss"), "joe");
  EXPECT_EQ(claims.find("exp"), "1300819380");
  EXPECT_EQ(claims.find("http://example.com/is_root"), "true");
  EXPECT_EQ(claims.find("sub"), "");
}

TEST(Token, ClaimsAreTextNumbersAndTruth) {
  Claims claims;
  const auto token =
      signed_token(R"({"sub":"ann","n":-7,"t":true,"f":false,"l":["a"],"o":{"a":"b"},"z":null,"e":"",)"
                   R"("u":"\u00fc","big":28800.0,"level":5.5,"exp10":1e3})",
                   kSecret);
  ASSERT_TRUE(verifier().verify(token, kNow, claims));
  const std::pair<const char*, const char*> cases[] = {
      {"sub", "ann"}, {"n", "-7"},      {"t", "true"},    {"f", "false"},    {"l", ""},
      {"o", ""},      {"z", ""},        {"e", ""},        {"u", "\xc3\xbc"}, {"Sub", ""},
      {"", ""},       {"big", "28800"}, {"level", "5.5"}, {"exp10", "1000"}};
  for (const auto& [name, value] : cases) EXPECT_EQ(claims.find(name), value) << name;
}

TEST(Token, IsInForceFromNotBeforeUpToExpiry) {
  const auto at = [&](const char* claims, base::TimePoint now) {
    return accepted(verifier(), signed_token(std::string(R"({"sub":"a",)") + claims + "}", kSecret), now);
  };
  EXPECT_TRUE(at(R"("exp":1700000001)", kNow + 999'999us));
  EXPECT_FALSE(at(R"("exp":1700000001)", kNow + 1s));
  EXPECT_TRUE(at(R"("exp":1700000000.5)", kNow + 499'999us));
  EXPECT_FALSE(at(R"("exp":1700000000.5)", kNow + 500ms));
  EXPECT_FALSE(at(R"("nbf":1700000000)", kNow - 1us));
  EXPECT_TRUE(at(R"("nbf":1700000000)", kNow));
  EXPECT_TRUE(at(R"("exp":9223372036854775807)", kNow));
  EXPECT_FALSE(at(R"("exp":0)", kNow));
  EXPECT_FALSE(at(R"("exp":-1)", kNow));
  for (const char* faulty : {R"("exp":"1800000000")", R"("exp":null)", R"("nbf":"0")", R"("nbf":true)"})
    EXPECT_FALSE(at(faulty, kNow)) << faulty;
}

TEST(Token, LeewayWidensBothBounds) {
  const auto lenient = verifier({"HS256", kSecret, {}, {}, 30s});
  const auto at = [&](const char* claims, base::TimePoint now) {
    return accepted(lenient, signed_token(std::string(R"({"sub":"a",)") + claims + "}", kSecret), now);
  };
  EXPECT_TRUE(at(R"("exp":1700000000)", kNow + 30s - 1us));
  EXPECT_FALSE(at(R"("exp":1700000000)", kNow + 30s));
  EXPECT_TRUE(at(R"("nbf":1700000000)", kNow - 30s));
  EXPECT_FALSE(at(R"("nbf":1700000000)", kNow - 30s - 1us));
}

TEST(Token, IsOfTheIssuerAndForTheAudienceAskedFor) {
  const auto strict = verifier({"HS256", kSecret, "https://login", "api"});
  const auto with = [&](const char* claims) {
    return accepted(strict, signed_token(std::string(R"({"sub":"a",)") + claims + "}", kSecret));
  };
  EXPECT_TRUE(with(R"("iss":"https://login","aud":"api")"));
  EXPECT_TRUE(with(R"("iss":"https://login","aud":["web","api"])"));
  for (const char* other :
       {R"("iss":"https://login")", R"("aud":"api")", R"("iss":"https://login","aud":["web"])",
        R"("iss":"https://Login","aud":"api")", R"("iss":["https://login"],"aud":"api")",
        R"("iss":"https://login","aud":[])", R"("iss":"https://login","aud":7)"})
    EXPECT_FALSE(with(other)) << other;
}

TEST(Token, ThatIsNotGenuineIsNone) {
  const std::string claims = R"({"sub":"a"})";
  const auto good = signed_token(claims, kSecret);
  ASSERT_TRUE(accepted(verifier(), good));
  auto altered = good;
  altered[good.find('.') + 3] ^= 1;
  const auto unsigned_part = base64url(R"({"alg":"none"})") + "." + base64url(claims) + ".";
  const std::string faulty[] = {
      "",
      ".",
      "..",
      "a.b.c",
      altered,
      good + "x",
      good.substr(0, good.size() - 1),
      good.substr(0, good.rfind('.') + 1),
      good.substr(0, good.rfind('.')),
      unsigned_part,
      unsigned_part.substr(0, unsigned_part.size() - 1),
      unsigned_part + good.substr(good.rfind('.') + 1),
      signed_token(claims, kSecret + "!"),
      signed_token(claims, kSecret, R"({"alg":"HS512"})"),
      signed_token(claims, kSecret, R"({"alg":"None"})"),
      signed_token(claims, kSecret, R"({"alg":"RS256"})"),
      signed_token(claims, kSecret, R"({})"),
      signed_token(claims, kSecret, R"({"alg":"HS256","crit":["exp"]})"),
      signed_token(R"(["sub"])", kSecret),
      signed_token("{\"sub\":\"a\"", kSecret),
      signed_token("", kSecret),
  };
  for (const auto& token : faulty) EXPECT_FALSE(accepted(verifier(), token)) << token;
}

TEST(Token, ForgetsTheClaimsOfTheOneBefore) {
  Claims claims;
  ASSERT_TRUE(verifier().verify(signed_token(R"({"sub":"ann","plan":"pro"})", kSecret), kNow, claims));
  ASSERT_TRUE(verifier().verify(signed_token(R"({"sub":"bob"})", kSecret), kNow, claims));
  EXPECT_EQ(claims.find("plan"), "");
  ASSERT_FALSE(verifier().verify("a.b.c", kNow, claims));
  EXPECT_EQ(claims.find("sub"), "");
}

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

std::string pem(EVP_PKEY* key, bool whole) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new(BIO_s_mem()), &BIO_free_all);
  whole ? PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr)
        : PEM_write_bio_PUBKEY(bio.get(), key);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string signed_by(EVP_PKEY* key, jwt_alg_t algorithm) {
  jwt_t* token = nullptr;
  jwt_new(&token);
  jwt_add_grant(token, "sub", "ann");
  const auto secret = pem(key, true);
  jwt_set_alg(token, algorithm, reinterpret_cast<const unsigned char*>(secret.data()),
              static_cast<int>(secret.size()));
  char* text = jwt_encode_str(token);
  std::string result = text != nullptr ? text : "";
  std::free(text);
  jwt_free(token);
  return result;
}

TEST(Token, OfPublicKeys) {
  struct Case {
    const char* name;
    jwt_alg_t algorithm;
    Key key;
  };
  const Case cases[] = {{"RS256", JWT_ALG_RS256, {EVP_RSA_gen(2048), &EVP_PKEY_free}},
                        {"RS512", JWT_ALG_RS512, {EVP_RSA_gen(2048), &EVP_PKEY_free}},
                        {"ES256", JWT_ALG_ES256, {EVP_EC_gen("P-256"), &EVP_PKEY_free}},
                        {"ES384", JWT_ALG_ES384, {EVP_EC_gen("P-384"), &EVP_PKEY_free}},
                        {"ES512", JWT_ALG_ES512, {EVP_EC_gen("P-521"), &EVP_PKEY_free}}};
  for (const auto& [name, algorithm, key] : cases) {
    const auto checks = verifier({name, pem(key.get(), false), {}, {}});
    const auto good = signed_by(key.get(), algorithm);
    EXPECT_TRUE(accepted(checks, good)) << name;
    auto altered = good;
    altered[altered.rfind('.') + 5] ^= 1;
    EXPECT_FALSE(accepted(checks, altered)) << name;
    for (const auto& [other, its_algorithm, its_key] : cases)
      if (other != name) {
        EXPECT_FALSE(accepted(checks, signed_by(its_key.get(), its_algorithm))) << name << other;
      }
    // The public key is no secret: an HMAC made with it proves nothing.
    EXPECT_FALSE(accepted(checks, signed_token(R"({"sub":"a"})", pem(key.get(), false)))) << name;
  }
}

TEST(TokenVerifier, SaysWhatIsWrongWithItsKey) {
  const Key small(EVP_RSA_gen(1024), &EVP_PKEY_free);
  const Key curve(EVP_EC_gen("P-384"), &EVP_PKEY_free);
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"HS256", "too short", "takes 32 octets"},
      {"HS512", std::string(63, 'x'), "takes 64 octets"},
      {"none", kSecret, "no algorithm"},
      {"HS257", kSecret, "no algorithm"},
      {"ES256", kSecret, "no public key"},
      {"RS256", pem(small.get(), false), "has 1024 bits"},
      {"RS256", pem(curve.get(), false), "no key for RS256"},
      {"ES384", pem(small.get(), false), "no key for ES384"},
      {"ES256", pem(curve.get(), false), "curve of 384 bits"},
  };
  for (const auto& [algorithm, key, why] : cases) {
    const auto made = TokenVerifier::make({algorithm, key, {}, {}});
    ASSERT_FALSE(made) << algorithm;
    EXPECT_NE(made.error().message.find(why), std::string::npos) << made.error().message;
  }
}

TEST(TokenIdentity, AClaimIsBelievedFromAnyoneAndAHeaderIsNot) {
  ClientSettings settings;
  settings.tokens = verifier();
  settings.user = {Source::Kind::Claim, "sub"};
  settings.org = {Source::Kind::Header, "X-Org"};
  settings.device = {Source::Kind::Claim, "did"};
  const auto token = "Bearer " + signed_token(R"({"sub":"ann","did":"d1","exp":1700000001})", kSecret);
  const auto head = head_with({{"Authorization", token}, {"X-Org", "acme"}});
  Credentials credentials;
  credentials.machine_now = kNow;
  const auto client = identify(settings, ip("203.0.113.7"), head, credentials);
  EXPECT_EQ(client.user, "ann");
  EXPECT_EQ(client.device, "d1");
  EXPECT_EQ(client.org, "");
  ASSERT_NE(client.claims, nullptr);
  EXPECT_EQ(client.claims->find("sub"), "ann");

  credentials.machine_now = kNow + 1s;
  const auto later = identify(settings, ip("203.0.113.7"), head, credentials);
  EXPECT_EQ(later.user, "");
  EXPECT_EQ(later.claims, nullptr);
}

}  // namespace
}  // namespace weir::policy
