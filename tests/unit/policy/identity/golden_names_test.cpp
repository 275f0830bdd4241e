// Checks that the names of clients never change. Other weir instances use the same names in Redis, and
// snapshots of the previous version contain these names. If the names change, an upgrade gives every client a
// fresh limit. Two versions with one Redis then give each client two limits. kWhatToDo says how to change
// names on purpose.
#include "unit/policy/sample.hpp"

#include "weir/limit/snapshot.hpp"
#include "weir/policy/body_values.hpp"
#include "weir/policy/rules/applied_limiter.hpp"
#include "weir/policy/saved_rule.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

constexpr const char* kWhatToDo =
    "names have changed: raise kSnapshotVersion (limit/snapshot/snapshot_words.hpp) and the version of the "
    "names in "
    "Redis, say so in the notes on upgrades, and then write the new names here";

constexpr NamingKeys kGoldenKeys{
    .table = {1, 2}, .shared = {0x0123'4567'89ab'cdef, 0xfedc'ba98'7654'3210}, .slot_hashes = false};

std::string hex(const base::Digest128& digest) {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(digest.hi),
                static_cast<unsigned long long>(digest.lo));
  return text.data();
}

using Names = std::vector<std::pair<std::string, std::string>>;

// Computes names for a client that has a value for every attribute.
class StableKeyNames : public testing::Test {
 protected:
  StableKeyNames() {
    claims_.add("sub", "ann");
    auto& client = request_.client;
    client.api_key = "k-1";
    client.user = "ann";
    client.org = "acme";
    client.tier = "pro";
    client.service = "billing";
    client.device = "phone";
    client.country = "CH";
    client.certificate_subject = "CN=ann";
    client.claims = &claims_;
  }
  [[nodiscard]] std::string name(const Rule& rule, std::uint16_t variant = 0, bool elastic = false,
                                 bool places = false) const {
    AppliedLimiter applied{rule.limiter.get(), rule.limiter.get(), variant};
    applied.elastic = elastic;
    auto keys = kGoldenKeys;
    keys.slot_hashes = places;
    return hex(name_in_redis(rule, applied, request_, keys).value());
  }

  http::RequestHead head_ = head_with({{"X-Tenant", "t1"}, {"Cookie", "sid=s1"}}, "q=v1");
  Claims claims_;
  Request request_ = request_of(head_);
};

TEST_F(StableKeyNames, KeysOfEveryAttributeHaveTheSameNamesAsInEarlierVersions) {
  const Names expected = {
      {"ip", "14ab3c0c94ecd15a6f0385e983ed4dc5"},
      {"api_key", "50b4d175e80b971dc02c2bfb3b7274ca"},
      {"user", "8bca1d520e0d7bb1725e878509ecae6b"},
      {"org", "4223e90f2f380111d37cb190af29b7fc"},
      {"tier", "42cbc31c344483b981e564847f7af4c7"},
      {"service", "9b291a9570aa7eb27f08ab787f522b59"},
      {"device", "83e634b6b308f18d710b6ab75b67bd84"},
      {"route", "77650a76be1c62ea6338070e6ed71da6"},
      {"host", "bd3b4a6f1e76a1e3567e834ea979d57c"},
      {"method", "a04e9c22e877b7efea321d2dc15f6248"},
      {"path", "9da7477e17c714645a35d09d5f849a06"},
      {"header:X-Tenant", "6dcd9307090171b7aae79f20c0cc05f2"},
      {"query:q", "677188e5d41b69b53f5f8c569f91ab98"},
      {"cookie:sid", "a025361815e5bb8b0863a4767e10109d"},
      {"country", "a3b9ee6e3ef043b0c719915f38cf8888"},
      {"claim:sub", "285c148192862afdd74ab7afb6ad5777"},
      {"cert:subject", "cc1411b1739c42842fd48cd159a1bb60"},
  };
  Names found;
  for (const auto& [part, unused] : expected) found.emplace_back(part, name(rule_of("r", {part})));
  EXPECT_EQ(found, expected) << kWhatToDo;
}

TEST_F(StableKeyNames, KeysOfPathSegmentsPlacesAndBodyValuesHaveTheSameNamesAsInEarlierVersions) {
  request_.path = "/orgs/acme";
  request_.client.city = "Geneva";
  request_.client.region = "CH-GE";
  request_.client.asn = "AS3303";
  BodyNames names;
  names.add_pointer("/email");
  names.add_field("email");
  BodyValues json, form;
  json.read(names, {}, R"({"email":"ann"})");
  const auto head = head_with({{"content-type", "application/x-www-form-urlencoded"}});
  form.read(names, head, "email=ann");
  const Names expected = {
      {"path:2", "74860d8058e3e06ad26713b53c2d6db5"},     {"json:/email", "be5f6c42ab8f88eaf11643a988bb9eb0"},
      {"form:email", "1f59a2a48b0541a86a47a42cf77bd1ad"}, {"city", "6e48cff34cbc9fbc57bbd44a3393b02e"},
      {"region", "36dfa2ed6e3fa321bc2fd87a1f0aa39b"},     {"asn", "31f6ecb02608b5e6bb1b9232b9cad700"},
  };
  Names found;
  for (const auto& [part, unused] : expected) {
    request_.body.values = part == "form:email" ? &form : &json;
    found.emplace_back(part, name(rule_of("r", {part})));
  }
  EXPECT_EQ(found, expected) << kWhatToDo;
}

TEST_F(StableKeyNames, ValuesOfQuestionsHaveTheSameNamesAsInEarlierVersions) {
  const std::vector<Descriptor> descriptors = {{.entries = {{"user", "ann"}}}};
  request_.descriptors = descriptors;
  request_.descriptor = descriptors.data();
  request_.domain = "edge";
  const Names expected = {
      {"descriptor:user", "85fc765ce8de44165b1ff32a5afb24f3"},
      {"domain", "cb4048c1ee0c367b9185517f606cc8fc"},
  };
  Names found;
  for (const auto& [part, unused] : expected) found.emplace_back(part, name(rule_of("r", {part})));
  EXPECT_EQ(found, expected) << kWhatToDo;
}

TEST_F(StableKeyNames, KeysWithSeveralPartsNoPartOrAMissingPartHaveTheSameNamesAsInEarlierVersions) {
  EXPECT_EQ(name(rule_of("r", {"api_key", "path"})), "87732d1f59b6a4a2b4752fb7c53d8c59") << kWhatToDo;
  EXPECT_EQ(name(rule_of("r", {})), "3657286b54c2220e022684334aeb7b06") << kWhatToDo;
  request_.client.user = {};
  auto by_user = rule_of("r", {"user", "route"});
  by_user.on_missing = OnMissing::Ip;
  EXPECT_EQ(name(by_user), "863a712d1b5a43f8c5a71046151da2be") << kWhatToDo;
  request_.client.network = ip("2001:db8::");
  EXPECT_EQ(name(rule_of("r", {"ip"})), "3db3d62fd9cf4254871e05b09eb8714e") << kWhatToDo;
}

TEST_F(StableKeyNames, KeysOfOverridesTiersAndElasticLimitsHaveTheSameNamesAsInEarlierVersions) {
  auto rule = rule_of("r", {"ip"});
  rule.overrides = {{.tier = {}, .limiter = bucket(1, 1)}, {.tier = {}, .limiter = bucket(2, 2)}};
  rule.tiers = {{.tier = "free", .limiter = bucket(3, 3)}, {.tier = "pro", .limiter = bucket(4, 4)}};
  const std::vector<std::string> expected = {
      "14ab3c0c94ecd15a6f0385e983ed4dc5", "b76700a07c0c32239c0af7d6baf11656",
      "c61a972e8e60a7184db89cedaab18754", "e6322ec008d94c8e70d29da0c556d284",
      "ddf9f52cab6de0d2d9623d8624726964", "85864b25c7b82bd74a247f105529d4b6",
      "daafbb1356b36f553e01cabcdaa08e46", "77cbfdca536d07bfe3473de4ce2e63d2",
      "27acb7705c85d8b3560b6f3ea9db2b5b", "fa4d360c7941b17939fcedf698d0a1d1",
  };
  for (const bool marked : {false, true}) {
    rule.marks = marked ? marks_of(rule) : std::vector<base::Digest128>{};
    std::vector<std::string> found;
    for (std::uint16_t variant = 0; variant < 5; ++variant)
      for (const bool elastic : {false, true}) found.push_back(name(rule, variant, elastic));
    EXPECT_EQ(found, expected) << kWhatToDo;
  }
}

// Checks the first four digits of each name in a Redis Cluster. The remaining digits equal those of names
// without a cluster.
TEST_F(StableKeyNames, NamesInAClusterBeginWithTheSameSlotHashAsInEarlierVersions) {
  const Names expected = {
      {"ip", "aca8"},
      {"user", "4f06"},
      {"query:q", "4af5"},
  };
  for (const auto& [part, place] : expected) {
    const auto rule = rule_of("r", {part});
    EXPECT_EQ(name(rule, 0, false, true), place + name(rule).substr(4)) << part << ": " << kWhatToDo;
  }
  EXPECT_EQ(name(rule_of("r", {"path", "user"}), 0, false, true).substr(0, 4),
            name(rule_of("r", {"user"}), 0, false, true).substr(0, 4));
}

TEST_F(StableKeyNames, MessageLimitsAndLoggedApiKeysHaveTheSameNamesAsInEarlierVersions) {
  const auto key = name_key(rule_of("r", {"ip"}), 0, request_, kGoldenKeys.shared);
  EXPECT_EQ(hex(message_key(*key)), "14ab3c0c94ecd15a0266f69ae28a28b6") << kWhatToDo;
  EXPECT_EQ(hex(*name_api_key(request_.client, kGoldenKeys)), "8f1247d184b2ff568d8aefeb187f95a7")
      << kWhatToDo;
}

// For each variant of a rule (a tier, an override or the rule itself), a snapshot stores two numbers: its
// name and a digest of its limits.
TEST_F(StableKeyNames, TiersAndOverridesInSnapshotsHaveTheSameNamesAsInEarlierVersions) {
  auto rule = rule_of("r", {"ip"});
  rule.elastic = Elastic{.limiter = bucket(20, 20), .while_load_below = 0.5};
  rule.overrides = {{.tier = {}, .limiter = bucket(1, 1)}};
  rule.tiers = {{.tier = "free", .limiter = bucket(3, 3)}};
  rule.messages = Messages{.limiter = bucket(5, 5)};
  const auto saved = saved_rules({&rule, 1});
  std::vector<std::string> found;
  for (const auto& variant : saved[0].variants) found.push_back(hex({variant.name, variant.numbers}));
  const std::vector<std::string> expected = {
      "b8559a5b7e9280d53b2d5f0c0bffa8e6", "49ba2b12f8b17262b2435615b195d0da",
      "3660c37a7984872e99d587a3cf48df00", "e1c5c6cc1326649846df1e0bf13cbe97",
      "979fd36328195bfcef7a0deed56e35d3",
  };
  EXPECT_EQ(found, expected) << kWhatToDo;
}

}  // namespace
}  // namespace weir::policy
