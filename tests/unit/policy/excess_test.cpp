// weir reads only a bounded number of a request's parameters, cookies and header lines. If a rule reads such
// values and the request exceeds the bound, weir rejects the request.
#include "unit/policy/sample.hpp"

#include "weir/policy/identity/client_address.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using ::testing::HasSubstr;

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

Rule rule_with(Match match) {
  auto rule = rule_of("few", {"ip"});
  rule.match = std::move(match);
  return rule;
}

Match on_query(std::string name, std::string_view text) {
  Match match;
  match.query = {{std::move(name), TextMatch::parse(text).value()}};
  return match;
}

Rejection object(const Rule& rule, const http::RequestHead& head) {
  Evaluation evaluation;
  return evaluation.collect(std::span(&rule, 1), request_of(head), kKeys);
}

TEST(Excess, RejectsTooManyQueryParametersIfARuleReadsThem) {
  const auto query = repeated("a&", 7800);
  const auto head = head_with({}, query);
  const auto rule = rule_with(on_query("b", "1"));
  const auto rejection = object(rule, head);
  ASSERT_TRUE(rejection);
  EXPECT_EQ(status_of(rejection), 400U);
  EXPECT_EQ(describe(rejection), "the query of the request has too many parameters");
  EXPECT_FALSE(object(rule_of("few", {"ip"}), head)) << "the rule reads no parameter";
}

TEST(Excess, ManyQueryParametersAreAcceptedIfTheRuleThatReadsThemDoesNotApply) {
  auto match = on_query("b", "1");
  match.methods = {"POST"};
  EXPECT_FALSE(object(rule_with(match), head_with({}, repeated("a&", 7800))));
}

TEST(Excess, RejectsAParameterThatIsRepeatedTooOften) {
  const auto query = repeated("a=1&", 17);
  const auto rule = rule_with(on_query("a", "1"));
  const auto rejection = object(rule, head_with({}, query));
  ASSERT_TRUE(rejection);
  EXPECT_EQ(describe(rejection), "the request repeats the query parameter a too often");
  EXPECT_FALSE(object(rule_with(on_query("a", "1")), head_with({}, query.substr(0, 16 * 4))));
  EXPECT_FALSE(object(rule_with(on_query("b", "1")), head_with({}, query)))
      << "the rule does not read the repeated parameter";
}

TEST(Excess, RejectsTooManyParametersIfAKeyOrCostReadsThem) {
  const auto many = repeated("a&", 1001);
  const auto often = repeated("k=1&", 17);
  auto costly = rule_of("few", {"ip"});
  costly.cost_from = {.kind = CostSource::Kind::Query, .name = "k"};
  for (const auto& rule : {rule_of("few", {"query:k"}), costly})
    for (const auto& query : {many, often}) EXPECT_TRUE(object(rule, head_with({}, query)).excess) << query;
}

TEST(Excess, RejectsTooManyLinesOfAHeaderThatAKeyOrCostReads) {
  auto costly = rule_of("few", {"ip"});
  costly.cost_from = {.kind = CostSource::Kind::Header, .name = "X-Tenant"};
  auto head = head_with({});
  for (const auto& rule : {rule_of("few", {"header:X-Tenant"}), costly}) {
    head.fields.clear();
    for (int i = 0; i < 17; ++i) {
      EXPECT_FALSE(object(rule, head)) << i;
      head.fields.push_back({"X-Tenant", "1", http::FieldId::Other});
    }
    EXPECT_THAT(describe(object(rule, head)), HasSubstr("repeats the header")) << describe(rule.key);
    EXPECT_FALSE(object(rule_of("few", {"header:X-Other"}), head_with({})))
        << "the rule reads another header";
  }
}

TEST(Excess, RejectsTooManyCookies) {
  const auto rule = rule_of("few", {"cookie:sid"});
  const auto many = "sid=1; " + repeated("a;", 1000);
  const auto rejection = object(rule, head_with({{"Cookie", many}}));
  ASSERT_TRUE(rejection);
  EXPECT_EQ(describe(rejection), "the request has too many cookies");
  EXPECT_FALSE(object(rule, head_with({{"Cookie", many.substr(0, 1000)}})));
  const auto often = repeated("sid=1; ", 17);
  EXPECT_THAT(describe(object(rule, head_with({{"Cookie", often}}))), HasSubstr("repeats the cookie sid"));
}

TEST(Excess, RejectsTooManyLinesOfAHeaderThatAConditionReads) {
  Match match;
  match.headers = {{"X-Tag", TextMatch::present()}};
  auto head = head_with({});
  for (int i = 0; i < 16; ++i) head.fields.push_back({"X-Tag", "a", http::FieldId::Other});
  EXPECT_FALSE(object(rule_with(match), head));
  head.fields.push_back({"X-Tag", "a", http::FieldId::Other});
  EXPECT_THAT(describe(object(rule_with(match), head)), HasSubstr("repeats the header X-Tag too often"));
}

TEST(Excess, ClientAddressIsFoundBehindABoundedNumberOfTrustedProxies) {
  const std::vector trusted{cidr("10.0.0.0/8")};
  const auto asked = [&](std::size_t proxies, AddressField field, std::string_view proxy) {
    const bool forwarded = field == AddressField::Forwarded;
    auto line = (forwarded ? "for=203.0.113.9" : "203.0.113.9") + repeated(proxy, proxies);
    http::RequestHead head;
    head.fields.push_back(
        {"X-Forwarded-For", line, forwarded ? http::FieldId::Forwarded : http::FieldId::XForwardedFor});
    return client_address(trusted, field, ip("10.0.0.1"), head.fields);
  };
  EXPECT_EQ(asked(63, AddressField::XForwardedFor, ", 10.0.0.2"), ip("203.0.113.9"));
  EXPECT_EQ(asked(64, AddressField::XForwardedFor, ", 10.0.0.2"), ip("10.0.0.2"));
  EXPECT_EQ(asked(64, AddressField::Forwarded, ", for=10.0.0.2"), ip("10.0.0.2"));
  EXPECT_EQ(asked(64, AddressField::XForwardedFor, ","), ip("10.0.0.1")) << "empty elements count as well";
}

}  // namespace
}  // namespace weir::policy
