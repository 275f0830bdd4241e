// Tests tokens whose keys are in a JWK set, and tokens of several issuers.
#include "policy/identity/token_keys.hpp"

#include "unit/policy/identity/token_sample.hpp"
#include "unit/policy/sample.hpp"

#include "weir/policy/token.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using ::testing::HasSubstr;

std::string set_of(const std::vector<std::string>& keys) {
  std::string text = R"({"keys":[)";
  for (const auto& key : keys) text += (text.back() == '[' ? "" : ",") + key;
  return text + "]}";
}

TokenVerifier verifier_of(const std::string& jwks, const std::string& issuer = {},
                          const std::string& algorithm = {}) {
  auto made = TokenVerifier::make(
      {.algorithm = algorithm, .key = {}, .issuer = issuer, .audience = {}, .jwks = jwks});
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

std::optional<TokenFault> fault_of(const TokenVerifier& verifier, const std::string& token) {
  Claims claims;
  const auto fault = verifier.verify(token, kNow, claims);
  EXPECT_EQ(claims.find("sub").empty(), fault.has_value()) << token;
  return fault;
}

std::string error_of_set(const std::string& text, std::string_view only = {}) {
  const auto keys = read_jwk_set(text, only);
  return keys ? "" : keys.error().message;
}

const std::string kAnn = R"({"sub":"ann"})";

TEST(JwkSet, TokenSignedWithAnyKeyOfTheSetIsVerified) {
  const auto signers = one_signer_of_each_algorithm();
  std::vector<std::string> keys;
  for (const auto& signer : signers)
    keys.push_back(signer.jwk(R"(,"kid":")" + std::string(signer.name) + "\""));
  const auto verifier = verifier_of(set_of(keys));
  for (const auto& signer : signers) {
    const auto kid = R"(,"kid":")" + std::string(signer.name) + "\"";
    EXPECT_EQ(fault_of(verifier, signer.token(kAnn, kid)), std::nullopt) << signer.name;
    EXPECT_EQ(fault_of(verifier, make_signer(signer.name).token(kAnn, kid)), TokenFault::Signature)
        << signer.name;
  }
}

// Appendix A of RFC 8037 has a key and a signature from another implementation. The signed text is no JSON.
TEST(JwkSet, VerifiesTheExampleOfRfc8037) {
  const auto verifier = verifier_of(
      set_of({R"({"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})"}));
  const std::string text = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.";
  const std::string signature =
      "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
  EXPECT_EQ(fault_of(verifier, text + signature), TokenFault::Malformed);
  EXPECT_EQ(fault_of(verifier, text + "A" + signature.substr(1)), TokenFault::Signature);
}

TEST(JwkSet, TokenIsVerifiedWithTheKeyThatHasItsKid) {
  const auto before = make_signer("ES256"), after = make_signer("ES256");
  const auto verifier = verifier_of(set_of({before.jwk(R"(,"kid":"2025")"), after.jwk(R"(,"kid":"2026")")}));
  EXPECT_EQ(fault_of(verifier, before.token(kAnn, R"(,"kid":"2025")")), std::nullopt);
  EXPECT_EQ(fault_of(verifier, after.token(kAnn, R"(,"kid":"2026")")), std::nullopt);
  EXPECT_EQ(fault_of(verifier, after.token(kAnn, R"(,"kid":"2025")")), TokenFault::Signature);
  EXPECT_EQ(fault_of(verifier, after.token(kAnn, R"(,"kid":"2027")")), TokenFault::Key);
  EXPECT_EQ(fault_of(verifier, after.token(kAnn)), TokenFault::Key) << "either key may be meant";
}

TEST(JwkSet, EveryKeyWithTheKidOfTheTokenIsTried) {
  const auto before = make_signer("ES256"), after = make_signer("ES256"), other = make_signer("ES256");
  const std::string kid = R"(,"kid":"k")";
  const auto verifier =
      verifier_of(set_of({before.jwk(kid), after.jwk(kid), other.jwk(R"(,"kid":"other")"), other.jwk()}));
  EXPECT_EQ(fault_of(verifier, before.token(kAnn, kid)), std::nullopt);
  EXPECT_EQ(fault_of(verifier, after.token(kAnn, kid)), std::nullopt);
  EXPECT_EQ(fault_of(verifier, other.token(kAnn, kid)), TokenFault::Signature);
}

TEST(JwkSet, RsaKeyWithWhichAnybodyCouldSignIsIgnored) {
  const auto rsa = make_signer("RS256");
  for (const char* exponent : {"AA", "AQ", "Ag"}) {
    auto jwk = rsa.jwk();
    jwk.replace(jwk.find("AQAB"), 4, exponent);
    EXPECT_THAT(error_of_set(set_of({jwk})), HasSubstr("has no public key")) << exponent;
  }
  EXPECT_EQ(error_of_set(set_of({rsa.jwk()})), "");
}

TEST(JwkSet, TokenWithoutKidUsesTheOnlyKeyOfItsAlgorithm) {
  const auto curve = make_signer("ES256"), rsa = make_signer("RS256");
  const auto verifier = verifier_of(set_of({curve.jwk(R"(,"kid":"a")"), rsa.jwk()}));
  EXPECT_EQ(fault_of(verifier, curve.token()), std::nullopt);
  EXPECT_EQ(fault_of(verifier, rsa.token(kAnn, R"(,"kid":"b")")), std::nullopt);
}

TEST(JwkSet, KeyThatNamesAnAlgorithmVerifiesOnlyThatAlgorithm) {
  const auto rsa = make_signer("RS256");
  const auto pss = Signer{"PS256", EVP_sha256(), 0, {rsa.key.get(), [](EVP_PKEY*) {}}};
  const auto any = verifier_of(set_of({rsa.jwk()}));
  EXPECT_EQ(fault_of(any, rsa.token()), std::nullopt);
  EXPECT_EQ(fault_of(any, pss.token()), std::nullopt);
  for (const auto& strict :
       {verifier_of(set_of({rsa.jwk(R"(,"alg":"RS256")")})), verifier_of(set_of({rsa.jwk()}), {}, "RS256")}) {
    EXPECT_EQ(fault_of(strict, rsa.token()), std::nullopt);
    EXPECT_EQ(fault_of(strict, pss.token()), TokenFault::Algorithm);
  }
}

TEST(JwkSet, TokenWithoutASignatureOrSignedWithASharedSecretIsRejected) {
  const auto rsa = make_signer("RS256");
  const auto verifier =
      verifier_of(set_of({rsa.jwk(), R"({"kty":"oct","k":")" + base64url(kSecret) + "\"}"}));
  EXPECT_EQ(fault_of(verifier, signed_token(kAnn, kSecret)), TokenFault::Algorithm);
  EXPECT_EQ(fault_of(verifier, signed_token(kAnn, pem(rsa.key.get(), false))), TokenFault::Algorithm);
  EXPECT_EQ(fault_of(verifier, base64url(R"({"alg":"none"})") + "." + base64url(kAnn) + "."),
            TokenFault::Algorithm);
}

TEST(JwkSet, IgnoresKeysOfUnsupportedTypesAndUses) {
  const auto good = make_signer("ES256");
  const Signer weak{"RS256", EVP_sha256(), 0, {EVP_RSA_gen(1024), &EVP_PKEY_free}};
  const auto keys =
      read_jwk_set(set_of({weak.jwk(), R"({"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"})", "7", "{}",
                           R"({"kty":"EC","crv":"P-256","x":")" + base64url(std::string(32, '\1')) +
                               R"(","y":")" + base64url(std::string(32, '\1')) + "\"}",
                           good.jwk(R"(,"use":"enc")"), good.jwk(R"(,"key_ops":["encrypt"])"),
                           good.jwk(R"(,"alg":"ECDH-ES")"), good.jwk(R"(,"alg":"RS256")"),
                           good.jwk(R"(,"kid":"good","use":"sig","key_ops":["verify"])")}),
                   {});
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 1U);
  EXPECT_EQ(keys->front().id, "good");
}

TEST(JwkSet, ErrorSaysWhatIsWrongWithTheKeySet) {
  for (const char* text :
       {"", "[]", "{}", R"({"keys":{}})", "-----BEGIN PUBLIC KEY-----", R"({"keys":[]} x)"})
    EXPECT_THAT(error_of_set(text), HasSubstr("is not a JWK set")) << text;
  EXPECT_THAT(error_of_set(R"({"keys":[]})"), HasSubstr("has no public key for signatures that weir knows"));
  EXPECT_EQ(error_of_set(set_of({make_signer("ES256").jwk()}), "RS256"), "has no public key for RS256");
  EXPECT_EQ(error_of_set(set_of(std::vector<std::string>(kMostJwks + 1, "{}"))),
            "has 101 keys; expected at most 100");
}

TEST(Issuers, TokenIsVerifiedWithTheKeysOfItsIssuer) {
  const auto a = make_signer("ES256"), b = make_signer("ES256");
  auto verifier = verifier_of(set_of({a.jwk(R"(,"kid":"k")")}), "https://a");
  verifier.add(verifier_of(set_of({b.jwk(R"(,"kid":"k")")}), "https://b"));
  const auto claims = [](const std::string& issuer) { return R"({"sub":"ann","iss":")" + issuer + "\"}"; };
  const std::string kid = R"(,"kid":"k")";
  EXPECT_EQ(fault_of(verifier, a.token(claims("https://a"), kid)), std::nullopt);
  EXPECT_EQ(fault_of(verifier, b.token(claims("https://b"), kid)), std::nullopt);
  EXPECT_EQ(fault_of(verifier, b.token(claims("https://a"), kid)), TokenFault::Signature);
  EXPECT_EQ(fault_of(verifier, a.token(claims("https://c"), kid)), TokenFault::Issuer);
  EXPECT_EQ(fault_of(verifier, a.token(kAnn, kid)), TokenFault::Issuer);
  EXPECT_EQ(fault_of(verifier, a.token("no JSON", kid)), TokenFault::Malformed);
}

}  // namespace
}  // namespace weir::policy
