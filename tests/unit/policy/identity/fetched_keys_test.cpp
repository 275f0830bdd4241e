// Tests tokens whose keys weir fetches from a URL.
#include "weir/policy/identity/fetched_keys.hpp"

#include "unit/policy/identity/token_sample.hpp"
#include "unit/policy/sample.hpp"

#include "weir/policy/token.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::string kUrl = "https://login.example.com/keys";
const std::string kClaims = R"({"sub":"ann","iss":"login"})";

std::string kid_of(const std::string& name) {
  return R"(,"kid":")" + name + "\"";
}

std::string set_with(const Signer& signer, const std::string& kid) {
  return R"({"keys":[)" + signer.jwk(kid_of(kid)) + "]}";
}

TokenVerifier fetching(const std::string& issuer, const std::string& url = kUrl,
                       const std::string& algorithm = {}) {
  return *TokenVerifier::make({.algorithm = algorithm,
                               .key = {},
                               .issuer = issuer,
                               .audience = {},
                               .fetch = KeyFetchSettings{.url = url, .cooldown = 2s}});
}

FetchedKeys& keys_of(const TokenVerifier& verifier, const std::string& url = kUrl) {
  return *verifier.fetched().at(url).second;
}

void fetch(FetchedKeys& keys, const std::string& set) {
  keys.begin_fetch();
  ASSERT_TRUE(keys.store(set));
}

std::optional<TokenFault> fault_with(const TokenVerifier& verifier, const std::string& token,
                                     bool keys_current = false) {
  Claims claims;
  return verifier.verify(token, kNow, claims, keys_current);
}

TEST(FetchedKeys, TokenCannotBeVerifiedBeforeTheFirstFetchOfKeys) {
  const auto signer = make_signer("ES256");
  const auto verifier = fetching("login");
  const auto token = signer.token(kClaims, kid_of("a"));
  EXPECT_EQ(fault_with(verifier, token), TokenFault::Unavailable);
  EXPECT_EQ(fault_with(verifier, token, true), TokenFault::Unavailable) << "nothing was fetched";
  EXPECT_EQ(fault_with(verifier, signer.token(kClaims)), TokenFault::Unavailable) << "a token without kid";
  EXPECT_TRUE(verifier.lacking(token));
  fetch(keys_of(verifier), set_with(signer, "a"));
  EXPECT_EQ(fault_with(verifier, token), std::nullopt);
  EXPECT_EQ(fault_with(verifier, signer.token(kClaims)), std::nullopt);
  EXPECT_FALSE(verifier.lacking(token));
}

TEST(FetchedKeys, TokenWithAnUnknownKidCannotBeVerifiedUntilTheNextFetch) {
  const auto before = make_signer("ES256"), after = make_signer("EdDSA");
  const auto verifier = fetching("login");
  auto& keys = keys_of(verifier);
  fetch(keys, set_with(before, "a"));
  const auto token = after.token(kClaims, kid_of("b"));
  EXPECT_EQ(fault_with(verifier, token), TokenFault::Unavailable) << "the new key may have a new algorithm";
  ASSERT_TRUE(verifier.lacking(token));
  EXPECT_EQ(verifier.lacking(token)->keys, &keys);
  EXPECT_EQ(verifier.lacking(token)->settings->url, kUrl);
  EXPECT_EQ(fault_with(verifier, token, true), TokenFault::Algorithm);
  EXPECT_EQ(fault_with(verifier, before.token(kClaims, kid_of("b")), true), TokenFault::Key);
  fetch(keys, set_with(after, "b"));
  EXPECT_EQ(fault_with(verifier, token), std::nullopt);
  EXPECT_EQ(fault_with(verifier, before.token(kClaims, kid_of("a")), true), TokenFault::Algorithm)
      << "the issuer has withdrawn the key";
}

TEST(FetchedKeys, TokenThatIsInvalidForAnotherReasonCausesNoFetch) {
  const auto signer = make_signer("ES256");
  const auto verifier = fetching("login", kUrl, "ES256");
  fetch(keys_of(verifier), set_with(signer, "a"));
  const std::pair<std::string, TokenFault> cases[] = {
      {"no.token", TokenFault::Malformed},
      {signer.token(R"({"iss":"other"})", kid_of("b")), TokenFault::Issuer},
      {signer.token("no JSON", kid_of("b")), TokenFault::Malformed},
      {make_signer("EdDSA").token(kClaims, kid_of("b")), TokenFault::Algorithm},
      {signed_token(kClaims, "secret", R"({"alg":"HS256","kid":"b"})"), TokenFault::Algorithm},
      {signed_token(kClaims, "secret", R"({"alg":"none","kid":"b"})"), TokenFault::Algorithm},
      {make_signer("ES256").token(kClaims, kid_of("a")), TokenFault::Signature},
  };
  for (const auto& [token, fault] : cases) {
    EXPECT_EQ(fault_with(verifier, token), fault) << token;
    EXPECT_FALSE(verifier.lacking(token)) << token;
  }
}

TEST(FetchedKeys, FetchedKeyOfAnAlgorithmThatIsNotConfiguredIsNotUsed) {
  const auto signer = make_signer("EdDSA");
  const auto verifier = fetching("login", kUrl, "ES256");
  fetch(keys_of(verifier), set_with(signer, "a"));
  EXPECT_EQ(fault_with(verifier, signer.token(kClaims, kid_of("a"))), TokenFault::Algorithm);
}

TEST(FetchedKeys, FailedFetchKeepsTheKeys) {
  const auto signer = make_signer("ES256");
  const auto verifier = fetching("login");
  auto& keys = keys_of(verifier);
  fetch(keys, set_with(signer, "a"));
  keys.begin_fetch();
  keys.fail();
  EXPECT_TRUE(keys.is_failing());
  EXPECT_EQ(fault_with(verifier, signer.token(kClaims, kid_of("a"))), std::nullopt);
  keys.begin_fetch();
  const auto stored = keys.store("<html>");
  ASSERT_FALSE(stored);
  EXPECT_THAT(stored.error().message, HasSubstr("is not a JWK set"));
  EXPECT_TRUE(keys.is_failing());
  EXPECT_FALSE(keys.has_fetched(2)) << "only the first fetch has succeeded";
  EXPECT_EQ(fault_with(verifier, signer.token(kClaims, kid_of("a"))), std::nullopt);
}

TEST(FetchedKeys, FetchAnswersOnlyWaitersThatAskedBeforeItBegan) {
  FetchedKeys keys;
  const auto set = set_with(make_signer("ES256"), "a");
  int rings = 0;
  keys.on_want([&] { ++rings; });
  const auto early = keys.want();
  EXPECT_EQ(rings, 1);
  EXPECT_TRUE(keys.is_wanted());
  keys.begin_fetch();
  EXPECT_FALSE(keys.is_wanted());
  const auto late = keys.want();
  ASSERT_TRUE(keys.store(set));
  EXPECT_TRUE(keys.has_fetched(early));
  EXPECT_FALSE(keys.has_fetched(late)) << "the issuer may have answered before it had the key";
  EXPECT_TRUE(keys.is_wanted());
  keys.begin_fetch();
  ASSERT_TRUE(keys.store(set));
  EXPECT_TRUE(keys.has_fetched(late));
}

TEST(FetchedKeys, NumberOfRequestsThatWaitForAFetchIsBounded) {
  FetchedKeys keys;
  EXPECT_TRUE(keys.enter(2));
  EXPECT_TRUE(keys.enter(2));
  EXPECT_FALSE(keys.enter(2));
  EXPECT_EQ(keys.waiting(), 2U);
  keys.leave();
  EXPECT_TRUE(keys.enter(2));
}

TEST(FetchedKeys, AllIssuersWithOneUrlShareItsKeysAlsoAfterAReload) {
  auto verifier = fetching("login");
  verifier.add(fetching("partner"));
  verifier.add(fetching("third", "https://third.example.net/keys"));
  EXPECT_EQ(verifier.fetched().size(), 2U);
  const auto signer = make_signer("ES256");
  fetch(keys_of(verifier), set_with(signer, "a"));
  const auto of_partner = signer.token(R"({"iss":"partner"})", kid_of("a"));
  EXPECT_EQ(fault_with(verifier, of_partner), std::nullopt);
  EXPECT_EQ(fault_with(verifier, signer.token(R"({"iss":"third"})", kid_of("a"))), TokenFault::Unavailable);

  auto reloaded = fetching("partner");
  EXPECT_EQ(fault_with(reloaded, of_partner), TokenFault::Unavailable);
  reloaded.share_keys(verifier.fetched());
  EXPECT_EQ(fault_with(reloaded, of_partner), std::nullopt);
  EXPECT_EQ(&keys_of(reloaded), &keys_of(verifier));
}

}  // namespace
}  // namespace weir::policy
