#include "weir/policy/token.hpp"

#include "unit/policy/identity/token_sample.hpp"
#include "unit/policy/sample.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using namespace std::chrono_literals;

TokenVerifier verifier(TokenSettings settings = {"HS256", kSecret, {}, {}}) {
  auto made = TokenVerifier::make(std::move(settings));
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

bool accepted(const TokenVerifier& verifier, const std::string& token, base::TimePoint now = kNow) {
  Claims claims;
  const bool good = !verifier.verify(token, now, claims);
  EXPECT_EQ(claims.find("sub").empty(), !good) << token;  // every token of this test has this claim
  return good;
}

// Appendix A.1 of RFC 7515 has a token from another implementation.
TEST(Token, AcceptsTheExampleOfRfc7515) {
  std::string key(66, '\0');
  const std::string_view text =
      "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ+EstJQLr/T+1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow==";
  ASSERT_EQ(
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(key.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size())),
      66);
  key.resize(64);  // removes the zero octets at the end, which come from the Base64 padding
  const auto of_standard = verifier({"HS256", key, {}, {}});
  const std::string token =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGx"
      "lLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  Claims claims;
  const base::TimePoint expiry{1'300'819'380s};
  EXPECT_EQ(of_standard.verify(token, expiry, claims), TokenFault::Expired);
  EXPECT_EQ(of_standard.verify(token, expiry - 1us, claims), std::nullopt);
  EXPECT_EQ(claims.find("iss"), "joe");
  EXPECT_EQ(claims.find("exp"), "1300819380");
  EXPECT_EQ(claims.find("http://example.com/is_root"), "true");
  EXPECT_EQ(claims.find("sub"), "");
}

TEST(Token, ReturnsClaimsThatAreStringsNumbersOrBooleans) {
  Claims claims;
  const auto token =
      signed_token(R"({"sub":"ann","n":-7,"t":true,"f":false,"l":["a"],"o":{"a":"b"},"z":null,"e":"",)"
                   R"("u":"\u00fc","big":28800.0,"level":5.5,"exp10":1e3})",
                   kSecret);
  ASSERT_FALSE(verifier().verify(token, kNow, claims));
  const std::pair<const char*, const char*> cases[] = {
      {"sub", "ann"}, {"n", "-7"},      {"t", "true"},    {"f", "false"},    {"l", ""},
      {"o", ""},      {"z", ""},        {"e", ""},        {"u", "\xc3\xbc"}, {"Sub", ""},
      {"", ""},       {"big", "28800"}, {"level", "5.5"}, {"exp10", "1000"}};
  for (const auto& [name, value] : cases) EXPECT_EQ(claims.find(name), value) << name;
}

TEST(Token, TokenIsValidFromItsNbfClaimToItsExpClaim) {
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

TEST(Token, LeewayExtendsTheValidityOfATokenAtBothEnds) {
  const auto lenient = verifier({"HS256", kSecret, {}, {}, 30s});
  const auto at = [&](const char* claims, base::TimePoint now) {
    return accepted(lenient, signed_token(std::string(R"({"sub":"a",)") + claims + "}", kSecret), now);
  };
  EXPECT_TRUE(at(R"("exp":1700000000)", kNow + 30s - 1us));
  EXPECT_FALSE(at(R"("exp":1700000000)", kNow + 30s));
  EXPECT_TRUE(at(R"("nbf":1700000000)", kNow - 30s));
  EXPECT_FALSE(at(R"("nbf":1700000000)", kNow - 30s - 1us));
}

TEST(Token, TokenOfAnotherIssuerOrAudienceIsRejected) {
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

std::optional<TokenFault> fault_of(const std::string& token, const TokenVerifier& checks = verifier()) {
  Claims claims;
  const auto fault = checks.verify(token, kNow, claims);
  EXPECT_TRUE(!fault || claims.find("sub").empty()) << token;
  return fault;
}

TEST(Token, RejectsForgedTokensWithAReason) {
  const std::string claims = R"({"sub":"a"})";
  const auto good = signed_token(claims, kSecret);
  ASSERT_EQ(fault_of(good), std::nullopt);
  auto altered = good;
  altered[good.find('.') + 3] ^= 1;
  const auto body = good.substr(0, good.rfind('.'));
  const auto unsigned_part = base64url(R"({"alg":"none"})") + "." + base64url(claims) + ".";
  using enum TokenFault;
  const std::pair<std::string, TokenFault> cases[] = {
      {"", Malformed},
      {".", Malformed},
      {"..", Malformed},
      {"a.b.c", Malformed},
      {good + ".x", Malformed},
      {good + "=", Malformed},
      {good + "x", Signature},
      {good + "xx", Malformed},  // no octet string has a Base64 form of 45 characters
      {body, Malformed},
      {body + ".", Signature},
      {altered, Signature},
      {good.substr(0, good.size() - 3), Signature},
      {unsigned_part, Algorithm},
      {unsigned_part.substr(0, unsigned_part.size() - 1), Malformed},
      {unsigned_part + good.substr(good.rfind('.') + 1), Algorithm},
      {signed_token(claims, kSecret + "!"), Signature},
      {signed_token(claims, kSecret, R"({"alg":"HS512"})"), Algorithm},
      {signed_token(claims, kSecret, R"({"alg":"None"})"), Algorithm},
      {signed_token(claims, kSecret, R"({"alg":"hs256"})"), Algorithm},
      {signed_token(claims, kSecret, R"({"alg":["HS256"]})"), Algorithm},
      {signed_token(claims, kSecret, R"({"alg":"RS256"})"), Algorithm},
      {signed_token(claims, kSecret, R"({})"), Algorithm},
      {signed_token(claims, kSecret, R"({"alg":"HS256","crit":["exp"]})"), Extension},
      {signed_token(claims, kSecret, R"({"alg":"HS256","crit":[]})"), Extension},
      {signed_token(claims, kSecret, R"({"alg":"none","crit":["exp"]})"), Algorithm},
      {signed_token(claims, kSecret, R"(["HS256"])"), Malformed},
      {signed_token(R"(["sub"])", kSecret), Malformed},
      {signed_token("{\"sub\":\"a\"", kSecret), Malformed},
      {signed_token("{\"sub\":\"\xff\"}", kSecret), Malformed},
      {signed_token("", kSecret), Malformed},
      {signed_token(std::string(10'000, '[') + std::string(10'000, ']'), kSecret), Malformed},
  };
  for (const auto& [token, fault] : cases) EXPECT_EQ(fault_of(token), fault) << token;
}

TEST(Token, ErrorNamesTheInvalidClaim) {
  const auto strict = verifier({"HS256", kSecret, "https://login", "api", 0s, true});
  const auto with = [&](const std::string& claims) {
    return fault_of(signed_token(claims, kSecret), strict);
  };
  using enum TokenFault;
  EXPECT_EQ(with(R"({"sub":"a","exp":1700000001,"iss":"https://login","aud":"api"})"), std::nullopt);
  EXPECT_EQ(with(R"({"sub":"a","exp":1700000000,"iss":"https://login","aud":"api"})"), Expired);
  EXPECT_EQ(with(R"({"sub":"a","exp":1700000009,"nbf":1700000001})"), NotYet);
  EXPECT_EQ(with(R"({"sub":"a","exp":1700000001,"iss":"x","aud":"api"})"), Issuer);
  EXPECT_EQ(with(R"({"sub":"a","exp":1700000001,"aud":"api"})"), Issuer);
  EXPECT_EQ(with(R"({"sub":"a","exp":1700000001,"iss":"https://login","aud":"web"})"), Audience);
  EXPECT_EQ(with(R"({"sub":"a","exp":"soon","iss":"https://login","aud":"api"})"), Malformed);
}

TEST(Token, RejectsAMissingExpiryIfRequired) {
  const auto token = signed_token(R"({"sub":"a"})", kSecret);
  EXPECT_EQ(fault_of(token), std::nullopt) << "the token never expires";
  EXPECT_EQ(fault_of(token, verifier({"HS256", kSecret, {}, {}, 0s, true})), TokenFault::Claim);
}

TEST(Token, RejectsATimeClaimThatIsNotAFiniteNumber) {
  for (const char* claims : {R"({"exp":1e400})", R"({"exp":-1e400})", R"({"exp":1900000000,"nbf":-1e400})"})
    for (const bool require_exp : {false, true})
      EXPECT_EQ(
          fault_of(signed_token(claims, kSecret), verifier({"HS256", kSecret, {}, {}, 0s, require_exp})),
          TokenFault::Malformed)
          << claims;
}

TEST(Token, LastOfTwoJsonMembersWithTheSameNameCounts) {
  EXPECT_EQ(fault_of(signed_token(R"({"sub":"a","exp":1900000000,"exp":1})", kSecret)), TokenFault::Expired);
  EXPECT_EQ(fault_of(signed_token(R"({"sub":"a"})", kSecret, R"({"alg":"HS256","alg":"none"})")),
            TokenFault::Algorithm);
}

TEST(Token, ClaimsOfThePreviousTokenAreForgotten) {
  Claims claims;
  ASSERT_FALSE(verifier().verify(signed_token(R"({"sub":"ann","plan":"pro"})", kSecret), kNow, claims));
  ASSERT_FALSE(verifier().verify(signed_token(R"({"sub":"bob"})", kSecret), kNow, claims));
  EXPECT_EQ(claims.find("plan"), "");
  ASSERT_TRUE(verifier().verify("a.b.c", kNow, claims));
  EXPECT_EQ(claims.find("sub"), "");
}

TEST(Token, VerifiesSignaturesWithPublicKeys) {
  const auto cases = one_signer_of_each_algorithm();
  for (const auto& signer : cases) {
    const auto checks = verifier({signer.name, pem(signer.key.get(), false), {}, {}});
    const auto good = signer.token();
    EXPECT_TRUE(accepted(checks, good)) << signer.name;
    auto altered = good;
    auto& digit = altered[altered.rfind('.') + 5];
    digit = digit == 'A' ? 'B' : 'A';
    EXPECT_EQ(fault_of(altered, checks), TokenFault::Signature) << signer.name;
    for (const auto& other : cases)
      if (&other != &signer) {
        EXPECT_EQ(fault_of(other.token(), checks), TokenFault::Algorithm) << signer.name << other.name;
      }
    // Everybody knows the public key. So an HMAC under the public key proves nothing, whatever the header
    // says.
    const auto key = pem(signer.key.get(), false);
    EXPECT_EQ(fault_of(signed_token(R"({"sub":"a"})", key), checks), TokenFault::Algorithm) << signer.name;
    const auto header = std::string(R"({"alg":")") + signer.name + "\"}";
    EXPECT_EQ(fault_of(signed_token(R"({"sub":"a"})", key, header), checks), TokenFault::Signature)
        << signer.name;
  }
}

TEST(Token, TokenWhoseKidIsNotTextIsMalformed) {
  for (const auto* kid : {"5", "null", "[\"a\"]"}) {
    const auto header = std::string(R"({"alg":"HS256","kid":)") + kid + "}";
    EXPECT_EQ(fault_of(signed_token(R"({"sub":"a"})", kSecret, header), verifier()), TokenFault::Malformed)
        << kid;
  }
  EXPECT_TRUE(accepted(verifier(), signed_token(R"({"sub":"a"})", kSecret, R"({"alg":"HS256","kid":"5"})")));
}

TEST(Token, RejectsEllipticCurveSignaturesInDerOrOfAnotherSize) {
  const auto signer = make_signer("ES256");
  const auto checks = verifier({"ES256", pem(signer.key.get(), false), {}, {}});
  const auto text = base64url(R"({"alg":"ES256"})") + "." + base64url(R"({"sub":"ann"})");
  const auto der = signer.signature(text);
  const auto pair = as_pair(der, 32);
  EXPECT_EQ(fault_of(text + "." + base64url(pair), checks), std::nullopt);
  for (const auto& other : {der, pair + '\0', pair.substr(1), std::string(64, '\0'), std::string(64, '\xff')})
    EXPECT_EQ(fault_of(text + "." + base64url(other), checks), TokenFault::Signature);
}

TEST(TokenVerifier, ErrorSaysWhatIsWrongWithTheKey) {
  const Key small(EVP_RSA_gen(1024), &EVP_PKEY_free);
  const Key curve(EVP_EC_gen("P-384"), &EVP_PKEY_free);
  const Key bitcoin(EVP_EC_gen("secp256k1"), &EVP_PKEY_free);
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"HS256", "too short", "needs 32 bytes"},
      {"HS512", std::string(63, 'x'), "needs 64 bytes"},
      {"none", kSecret, "not a signature algorithm"},
      {"HS257", kSecret, "not a signature algorithm"},
      {"ES256", kSecret, "not a public key"},
      {"RS256", pem(small.get(), false), "has 1024 bits"},
      {"RS256", pem(curve.get(), false), "not a key for RS256"},
      {"ES384", pem(small.get(), false), "not a key for ES384"},
      {"ES256", pem(curve.get(), false), "curve of 384 bits"},
      {"ES256", pem(bitcoin.get(), false), "curve secp256k1"},
  };
  for (const auto& [algorithm, key, why] : cases) {
    const auto made = TokenVerifier::make({algorithm, key, {}, {}});
    ASSERT_FALSE(made) << algorithm;
    EXPECT_NE(made.error().message.find(why), std::string::npos) << made.error().message;
  }
}

TEST(TokenIdentity, ClaimsAreBelievedFromAnyPeerButIdentityHeadersOnlyFromTrustedPeers) {
  ClientSettings settings;
  settings.tokens = verifier();
  settings.user = {Source::Kind::Claim, "sub"};
  settings.org = {Source::Kind::Header, "X-Org"};
  settings.device = {Source::Kind::Claim, "did"};
  const auto token = "Bearer " + signed_token(R"({"sub":"ann","did":"d1","exp":1700000001})", kSecret);
  const auto head = head_with({{"Authorization", token}, {"X-Org", "acme"}});
  Credentials credentials;
  credentials.machine_now = kNow;
  auto client = identify(settings, ip("203.0.113.7"), head, credentials);
  EXPECT_EQ(client.user, "") << "the token is not verified yet";
  EXPECT_EQ(client.claims, nullptr);
  EXPECT_EQ(verify_token(client, credentials), std::nullopt);
  EXPECT_EQ(client.user, "ann");
  EXPECT_EQ(client.device, "d1");
  EXPECT_EQ(client.org, "");
  ASSERT_NE(client.claims, nullptr);
  EXPECT_EQ(client.claims->find("sub"), "ann");

  credentials.machine_now = kNow + 1s;
  auto later = identify(settings, ip("203.0.113.7"), head, credentials);
  EXPECT_EQ(verify_token(later, credentials), TokenFault::Expired);
  EXPECT_EQ(verify_token(later, credentials), std::nullopt) << "the token is verified once";
  EXPECT_EQ(later.token_fault, TokenFault::Expired);
  EXPECT_EQ(later.user, "");
  EXPECT_EQ(later.claims, nullptr);
}

}  // namespace
}  // namespace weir::policy
