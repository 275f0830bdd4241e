#include "unit/policy/sample.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

class NameKey : public testing::Test {
 protected:
  [[nodiscard]] std::optional<limit::Key> name(const Rule& rule, std::uint16_t variant = 0) const {
    return name_key(rule, variant, request_, kKey);
  }
  [[nodiscard]] std::optional<limit::Key> name(std::initializer_list<std::string_view> parts) const {
    return name(rule_of("r", parts));
  }

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
};

TEST_F(NameKey, NameOfAKeyDependsOnTheNameOfTheRuleAndNotOnItsPosition) {
  Rule rule = rule_of("r", {"ip"});
  const auto before = name(rule);
  rule.index = 7;
  EXPECT_EQ(name(rule), before);
  EXPECT_NE(name_key(rule, 0, request_, {1, 3}), before);
  EXPECT_NE(name(rule_of("s", {"ip"})), before);
  request_.client.network = ip("203.0.113.8");
  EXPECT_NE(name(rule), before);
}

TEST_F(NameKey, NameOfAKeyIsTheSameWithAndWithoutACachedDigestOfTheAddress) {
  AddressDigest memory;
  const std::vector<Rule> rules{rule_of("a", {"ip"}), rule_of("b", {"ip"}), rule_of("c", {"ip", "method"}),
                                rule_of("d", {"user"}), rule_of("e", {})};
  for (const auto* address : {"203.0.113.7", "203.0.113.7", "2001:db8::1", "203.0.113.7", "::"})
    for (const auto key : {base::SipKey{1, 2}, base::SipKey{1, 3}, base::SipKey{}})
      for (const auto& rule : rules) {
        request_.client.network = ip(address);
        request_.address_digest = nullptr;
        const auto expected = name_key(rule, 0, request_, key);
        request_.address_digest = &memory;
        EXPECT_EQ(name_key(rule, 0, request_, key), expected) << address << ' ' << rule.name;
      }
  EXPECT_TRUE(memory.known);
}

TEST_F(NameKey, MappedAddressIsNamedAsIpv4AndAnIpv6AddressByItsPrefix) {
  const ClientSettings settings;
  const auto of = [&](std::string_view peer) {
    request_.client = identify(settings, ip(peer), head_);
    return name({"ip"});
  };
  EXPECT_EQ(of("::ffff:203.0.113.7"), of("203.0.113.7"));
  EXPECT_EQ(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
  EXPECT_NE(of("2001:db8::1"), of("2001:db8:0:1::1"));
}

TEST_F(NameKey, EqualValuesOfDifferentAttributesGetDifferentNames) {
  const std::string bytes(request_.client.network.view());
  request_.client.api_key = request_.client.user = request_.client.org = request_.client.tier = bytes;
  request_.client.service = request_.client.device = request_.route = request_.host = request_.path = bytes;
  request_.upstream = bytes;
  request_.client.country = request_.client.certificate_subject = head_.method = bytes;
  std::set<limit::Key> names;
  const auto kinds = {"ip",    "api_key", "user",   "org",  "tier",    "service",      "device",
                      "route", "host",    "method", "path", "country", "cert:subject", "upstream"};
  for (const auto* kind : kinds) names.insert(name({kind}).value());
  EXPECT_EQ(names.size(), kinds.size());
}

TEST_F(NameKey, ApiKeyWithTheTextOfAnAddressHasAnotherNameThanTheAddress) {
  request_.client.api_key = "203.0.113.7";
  EXPECT_NE(name({"api_key|ip"}), name({"ip"}));
  request_.client.api_key = {};
  EXPECT_EQ(name({"api_key|ip"}), name({"ip"}));
}

TEST_F(NameKey, SameTextDividedIntoOtherKeyPartsHasAnotherName) {
  const auto of = [&](std::string_view user, std::string_view org) {
    request_.client.user = user;
    request_.client.org = org;
    return name({"user", "org"});
  };
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(of("a", "b"), of("b", "a"));
}

TEST_F(NameKey, RuleWithoutKeyPartsHasOneKeyForAllClients) {
  const auto one = name(std::initializer_list<std::string_view>{});
  request_.client.network = ip("198.51.100.1");
  EXPECT_EQ(name(std::initializer_list<std::string_view>{}), one);
  EXPECT_NE(name(rule_of("s", {})), one);
}

TEST_F(NameKey, EqualValuesOfDifferentHeadersParametersOrCookiesHaveDifferentNames) {
  head_ = head_with({{"X-A", "v"}, {"X-B", "v"}, {"Cookie", "a=v; b=v"}}, "a=v&b=v");
  std::set<limit::Key> names;
  for (const auto* part : {"header:X-A", "header:X-B", "query:a", "query:b", "cookie:a", "cookie:b"})
    names.insert(name({part}).value());
  EXPECT_EQ(names.size(), 6U);
}

TEST_F(NameKey, ClaimOfAVerifiedTokenIsPartOfTheName) {
  Claims claims;
  claims.add("sub", "ann");
  claims.add("plan", "ann");
  EXPECT_EQ(name({"claim:sub"}), std::nullopt);
  request_.client.claims = &claims;
  EXPECT_TRUE(name({"claim:sub"}));
  EXPECT_NE(name({"claim:sub"}), name({"claim:plan"}));
  EXPECT_EQ(name({"claim:role"}), std::nullopt);
  request_.client.user = "ann";
  EXPECT_NE(name({"claim:sub"}), name({"user"}));
}

// All encodings of a value must give the same name, because the upstream decodes all of them alike.
TEST_F(NameKey, QueryValueIsDecodedBeforeItIsNamed) {
  const auto of = [&](std::string_view query) {
    head_.query = query;
    return name({"query:user"});
  };
  EXPECT_EQ(of("us%65r=%61nn"), of("user=ann"));
  EXPECT_EQ(of("x=1&user=ann&us%65r=ann"), of("user=ann"));
  EXPECT_NE(of("user=%2561nn"), of("user=ann"));
  EXPECT_EQ(of("user="), std::nullopt);
  EXPECT_EQ(of("User=ann"), std::nullopt);
}

// Property: two requests have the same name only if each part of their keys has the same kind and value.
TEST_F(NameKey, DifferentValuesNeverHaveTheSameName) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Rule rule = rule_of("r", {"user|org", "device", "header:X-T|query:t|cookie:t", "claim:c|country"});
  const auto word = [&] {  // few different letters and separators, so that parts are often similar
    constexpr std::string_view kLetters("ab|:\0", 5);
    std::string text(random() % 4, 'a');
    for (char& c : text) c = kLetters[random() % kLetters.size()];
    return text;
  };
  std::map<std::vector<std::string>, limit::Key> names;
  std::map<limit::Key, std::vector<std::string>> owners;
  for (int i = 0; i < 20'000; ++i) {
    std::array<std::string, 8> v;
    for (auto& text : v) text = word();
    const auto cookie = "t=" + v[5];
    const auto query = "t=" + v[4];
    head_ = head_with({{"X-T", v[3]}, {"Cookie", cookie}}, query);
    Claims claims;
    if (!v[6].empty()) claims.add("c", v[6]);
    request_.client.user = v[0];
    request_.client.org = v[1];
    request_.client.device = v[2];
    request_.client.claims = &claims;
    request_.client.country = v[7];
    const auto first = [&](std::initializer_list<std::size_t> from) {
      for (const auto at : from)
        if (!v[at].empty()) return std::to_string(at) + v[at];
      return std::string();
    };
    const std::vector<std::string> parts = {first({0, 1}), first({2}), first({3, 4, 5}), first({6, 7})};
    const auto key = name(rule);
    const bool whole =
        std::none_of(parts.begin(), parts.end(), [](const auto& part) { return part.empty(); });
    ASSERT_EQ(key.has_value(), whole);
    if (!whole) continue;
    ASSERT_EQ(names.emplace(parts, *key).first->second, *key);
    ASSERT_EQ(owners.emplace(*key, parts).first->second, parts);
  }
  EXPECT_GT(names.size(), 2000U);
}

TEST_F(NameKey, HeaderNamesIgnoreCaseAndEqualHeaderLinesAreOneValue) {
  const auto of = [&](Lines lines) {
    head_ = head_with(lines);
    return name({"header:X-Tenant"});
  };
  EXPECT_EQ(of({{"x-tenant", "a"}}), of({{"X-TENANT", "a"}}));
  EXPECT_EQ(of({{"X-Tenant", "a"}, {"X-Tenant", "a"}}), of({{"X-Tenant", "a"}}));
  EXPECT_EQ(of({{"X-Tenant", "a"}, {"X-Tenant", "b"}}), std::nullopt);  // ambiguity_in_key() reports why
  EXPECT_EQ(of({{"X-Tenant", ""}}), std::nullopt);
  EXPECT_EQ(of({{"X_Tenant", "a"}}), std::nullopt);
}

TEST_F(NameKey, AllSpellingsOfAValueGiveTheSameName) {
  const auto query = [&](std::string_view text) {
    head_ = head_with({}, text);
    return name({"query:my q"});
  };
  for (const auto* way : {"my%20q=a%20b", "my+q=a+b", "%6Dy+%71=%61+b", "x=y&my%20q=a+b&my+q=a%20b"})
    EXPECT_EQ(query(way), query("my q=a b")) << way;
  EXPECT_NE(query("my+q=a%2Bb"), query("my+q=a+b"));
  const auto cookies = [&](std::string_view text) {
    head_ = head_with({{"Cookie", text}});
    return name({"cookie:s"});
  };
  for (const auto* way : {"s=\"ab\"", "s=%61b", "t=1; s=ab", "s=ab; s=ab", "s = ab"})
    EXPECT_EQ(cookies(way), cookies("s=ab")) << way;
  EXPECT_NE(cookies("s=%2561b"), cookies("s=ab"));
}

TEST_F(NameKey, RequestWithDifferentValuesOfAKeyPartIsReported) {
  const auto found = [&](std::initializer_list<std::string_view> parts, Lines lines, std::string_view query) {
    head_ = head_with(lines, query);
    const auto rule = rule_of("r", parts);  // must outlive the names in the result
    const auto ambiguity = ambiguity_in_key(rule, request_of(head_));
    return ambiguity ? std::string(ambiguity->place) + " " + std::string(ambiguity->name) : std::string();
  };
  EXPECT_EQ(found({"query:q"}, {}, "q=1&q=2"), "query parameter q");
  EXPECT_EQ(found({"query:q"}, {}, "q=1&%71=2"), "query parameter q");
  EXPECT_EQ(found({"query:q"}, {}, "q=&q=2"), "query parameter q");
  EXPECT_EQ(found({"ip", "cookie:s"}, {{"Cookie", "s=1"}, {"Cookie", "s=2"}}, ""), "cookie s");
  EXPECT_EQ(found({"header:X-T|ip"}, {{"X-T", "1"}, {"x-t", "2"}}, ""), "header x-t");
  // The key uses the address, which every request has, so weir does not read the header.
  EXPECT_EQ(found({"ip|header:X-T"}, {{"X-T", "1"}, {"x-t", "2"}}, ""), "");
  EXPECT_EQ(found({"query:q"}, {}, "q=%31&q=1&p=1&p=2"), "");
  EXPECT_EQ(found({"ip"}, {{"X-T", "1"}, {"x-t", "2"}}, "q=1&q=2"), "");
}

TEST_F(NameKey, EveryCharacterOfALongValueAffectsTheName) {
  std::string value(20'000, 'a');
  const auto of = [&] {
    head_ = head_with({{"X-Tenant", value}});
    return name({"header:X-Tenant"});
  };
  const auto before = of();
  value.back() = 'b';
  EXPECT_NE(of(), before);
}

TEST_F(NameKey, OnMissingDecidesWhetherTheAddressReplacesAMissingPart) {
  Rule rule = rule_of("r", {"user", "method"});
  EXPECT_EQ(name(rule), std::nullopt);
  rule.on_missing = OnMissing::Reject;
  EXPECT_EQ(name(rule), std::nullopt);
  rule.on_missing = OnMissing::Ip;
  EXPECT_EQ(name(rule), name({"ip", "method"}));  // the address replaces only the missing part
  request_.client.user = "ann";
  EXPECT_EQ(name(rule), name({"user", "method"}));
}

// An address that replaces a missing part also determines the slot hash. Otherwise one node of a Redis
// Cluster would store all clients without that part.
TEST_F(NameKey, AddressInPlaceOfAMissingPartDeterminesTheClusterSlot) {
  Rule rule = rule_of("r", {"user", "path"});
  rule.on_missing = OnMissing::Ip;
  const auto place = slot_hash_of_client(rule, request_, kKey);
  EXPECT_EQ(place, slot_hash_of_client(rule_of("s", {"ip"}), request_, kKey));
  request_.client.network = ip("203.0.113.8");
  EXPECT_NE(slot_hash_of_client(rule, request_, kKey), place);
  request_.client.user = "ann";
  EXPECT_EQ(slot_hash_of_client(rule, request_, kKey),
            slot_hash_of_client(rule_of("s", {"user"}), request_, kKey));
}

TEST_F(NameKey, KeysOfTiersAndOverridesHaveSeparateNamesThatNeverChange) {
  Rule rule = rule_of("r", {"ip"});
  rule.tiers.push_back({.tier = "free", .limiter = bucket(1, 1)});
  rule.tiers.push_back({.tier = "pro", .limiter = bucket(1, 1)});
  const auto pro = name(rule, 2);
  EXPECT_EQ((std::set{*name(rule, 0), *name(rule, 1), *pro}).size(), 3U);
  rule.overrides.push_back({.tier = {}, .limiter = bucket(1, 1)});
  rule.overrides.push_back({.tier = {}, .limiter = bucket(1, 1)});
  // The two new overrides change the number of the tier "pro" from 2 to 4, but not the name of its key.
  EXPECT_EQ(name(rule, 4), pro);
  EXPECT_EQ((std::set{*name(rule, 0), *name(rule, 1), *name(rule, 2), *name(rule, 3), *pro}).size(), 5U);
}

// Consecutive rules with the same key share one digest of the client. A name must not depend on the rules
// before its rule, or on whether digests of the limiters were computed in advance.
TEST_F(NameKey, NameOfAKeyDoesNotDependOnTheRulesWhoseKeysWereNamedBefore) {
  request_.client.user = "ann";
  std::vector<Rule> rules;
  const auto add = [&](std::string name, std::initializer_list<std::string_view> parts) {
    for (const auto missing : {OnMissing::Skip, OnMissing::Ip}) {
      auto& rule = rules.emplace_back(rule_of(name, parts));
      rule.on_missing = missing;
      rule.tiers.push_back({.tier = "pro", .limiter = bucket(1, 1)});
      rule.overrides.push_back({.tier = {}, .limiter = bucket(1, 1)});
    }
  };
  for (const auto* name : {"a", "b"}) {
    add(name, {"ip"});
    add(name, {"user"});
    add(name, {"user", "ip"});
    add(name, {"org"});
    add(name, {});
  }
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::set<limit::Key> names;
  Namer namer(request_);
  for (int i = 0; i < 10'000; ++i) {
    Rule& rule = rules[random() % rules.size()];
    rule.marks = random() % 2 == 0 ? marks_of(rule) : std::vector<base::Digest128>{};
    AppliedLimiter applied{&*rule.limiter, &*rule.limiter};
    applied.variant = static_cast<std::uint16_t>(random() % 3);
    applied.elastic = random() % 2 == 0;
    const base::SipKey key{1, random() % 2};
    const auto name = namer.name(rule, applied, key);
    ASSERT_EQ(name, name_key(rule, applied, request_, key));
    if (name) names.insert(*name);
  }
  // Two rule names, three variants, elastic or not, two secrets, and four of the five keys. The key {"org"}
  // adds no name, because the request has no org. A rule with this key skips the request, or uses the address
  // and so has the name of the key {"ip"}.
  EXPECT_EQ(names.size(), 2U * 3 * 2 * 2 * 4);
}

// The format of a limiter's state may differ between versions of weir. With equal names, two versions would
// read each other's state as missing.
TEST_F(NameKey, NameInRedisDependsOnTheFormatOfTheLimitersState) {
  const limit::Rate rate{.count = 10, .period = base::Duration{1'000'000}};
  const limit::SharedLimiter limiters[] = {
      limit::TokenBucket::make(rate, 10).value(), limit::Gcra::make(rate, 10).value(),
      limit::FixedWindow::make(rate).value(),     limit::SlidingWindow::make(rate).value(),
      limit::SlidingLog::make(rate).value(),      limit::Concurrency::make(10).value(),
  };
  for (const auto store : {Store::Memory, Store::Redis}) {
    std::set<limit::Key> names, of_overrides;
    for (const auto& limiter : limiters) {
      auto rule = rule_of("r", {"ip"});
      rule.store = store;
      rule.limiter = limiter;
      rule.overrides = {{.tier = {}, .limiter = limiter}};
      names.insert(*name(rule));
      of_overrides.insert(*name(rule, 1));
    }
    EXPECT_EQ(names.size(), store == Store::Memory ? 1U : 5U) << "token buckets and GCRA share one format";
    EXPECT_EQ(of_overrides.size(), names.size());
  }
}

// Load balancing by hash (Balance::Hash) uses name_client(), which needs no rule. The client's address
// replaces a missing attribute.
TEST_F(NameKey, ClientNameForLoadBalancingNeedsNoRule) {
  const auto of = [&](std::initializer_list<std::string_view> parts) {
    return name_client(rule_of("any", parts).key, request_, kKey);
  };
  const auto by_address = of({"ip"});
  EXPECT_EQ(of({"api_key"}), by_address) << "the request has no API key";
  EXPECT_EQ(of({"api_key|ip"}), by_address);
  request_.client.api_key = "k";
  EXPECT_NE(of({"api_key"}), by_address);
  EXPECT_EQ(of({"api_key|ip"}), of({"api_key"}));
  EXPECT_NE(of({"api_key", "ip"}), of({"api_key"}));
  EXPECT_NE(name_client(rule_of("any", {"ip"}).key, request_, {9, 9}), by_address);
}

}  // namespace
}  // namespace weir::policy
