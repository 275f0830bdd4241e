// Tests rules whose key or conditions read the body.
#include "unit/policy/sample.hpp"

#include "weir/policy/client_text.hpp"
#include "weir/policy/inspection.hpp"
#include "weir/policy/key_values.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using State = RequestBody::State;

class BodyKeys : public testing::Test {
 protected:
  static constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

  void rule(std::initializer_list<std::string_view> parts) {
    rules_ = {rule_of("r", parts)};
    rules_[0].max_body = 100;
  }
  void model(std::string_view pattern) {
    rules_[0].match.json.push_back({"/model", TextMatch::parse(pattern).value()});
    rules_[0].match.max_body = rules_[0].max_body = 100;
  }
  void body(std::string_view text, std::string_view type = "application/json") {
    head_ = head_with({{"content-type", type}});
    names_ = body_names(rules_);
    values_.read(names_, head_, text);
    request_.body = {State::Whole, text, &values_};
  }
  std::optional<limit::Key> key() { return name_key(rules_[0], 0, request_, kKey); }
  Rejection collect() { return evaluation_.collect(rules_, request_, kKeys); }
  std::size_t charges() {
    EXPECT_FALSE(collect());
    return evaluation_.local.charges().size();
  }
  bool asks() const { return asks_for_body(rules_[0], request_); }

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  std::vector<Rule> rules_ = {rule_of("r", {"ip"})};
  BodyNames names_;
  BodyValues values_;
  Evaluation evaluation_;
};

TEST_F(BodyKeys, EachValueOfAJsonMemberGetsItsOwnKey) {
  rule({"json:/email"});
  body(R"({"email":"ada"})");
  const auto ada = key();
  ASSERT_TRUE(ada);
  request_.client.network = ip("203.0.113.99");
  body(R"({"password":"x","email":"\u0061da"})");
  EXPECT_EQ(key(), ada) << "the key is the account, not the address";
  body(R"({"email":"bob"})");
  EXPECT_NE(key(), ada);
  rule({"form:email"});
  body("email=ada", "application/x-www-form-urlencoded");
  EXPECT_NE(key(), ada) << "another attribute is another key";
}

TEST_F(BodyKeys, OnMissingDecidesAboutABodyWithoutTheMember) {
  rule({"json:/email"});
  for (const auto* text : {"", "{}", R"({"email":null})", R"({"email":""})"}) {
    body(text);
    EXPECT_EQ(charges(), 0U) << text;
  }
  rules_[0].on_missing = OnMissing::Ip;
  EXPECT_EQ(charges(), 1U);
  rules_[0].on_missing = OnMissing::Reject;
  EXPECT_EQ(status_of(collect()), 400U);
  EXPECT_EQ(describe(collect()), "rule r needs the JSON member /email in the request body");
  rule({"json:/email|form:email"});
  rules_[0].on_missing = OnMissing::Reject;
  EXPECT_EQ(describe(collect()),
            "rule r needs the JSON member /email or the form field email in the request body");
}

TEST_F(BodyKeys, BodyWhoseKeyMemberIsAnObjectOrArrayIsRefused) {
  rule({"json:/email"});
  for (const auto* text : {R"({"email":{}})", R"({"email":["ada"]})", R"({"email":{"$eq":"ada"}})"}) {
    body(text);
    EXPECT_EQ(status_of(collect()), 400U) << text;
    EXPECT_EQ(describe(collect()),
              "the JSON member /email in the request body is an object or an array; send a text or a number");
  }
}

TEST_F(BodyKeys, BodyThatIsNotJsonIsRefused) {
  rule({"json:/email"});
  body("{");
  EXPECT_EQ(status_of(collect()), 400U);
  EXPECT_EQ(describe(collect()),
            "rule r cannot read the JSON member /email: the request body ends within its JSON value; send "
            "all of it");
  rule({"api_key|json:/email"});
  body("{");
  request_.client.api_key = "k";
  EXPECT_EQ(charges(), 1U) << "the API key comes first";
}

TEST_F(BodyKeys, BodyThatRepeatsTheKeyMemberOrFieldIsRefused) {
  rule({"json:/email"});
  body(R"({"email":"a","email":"a"})");
  EXPECT_EQ(describe(collect()), "the request body has the JSON member /email more than once; send it once");
  rule({"form:email"});
  body("email=a&email=a", "application/x-www-form-urlencoded");
  EXPECT_EQ(describe(collect()), "the request body has the form field email more than once; send it once");
}

TEST_F(BodyKeys, KeyMayComeFromJsonOrFromAForm) {
  rule({"json:/email|form:email"});
  body(R"({"email":"ada"})");
  EXPECT_EQ(key_values(rules_[0], request_)[0].value, "ada");
  body("email=bob", "application/x-www-form-urlencoded");
  ASSERT_EQ(charges(), 1U);
  EXPECT_EQ(key_values(rules_[0], request_)[0].value, "bob");
}

TEST_F(BodyKeys, BodyThatContainsTheKeyAsJsonAndAsAFormFieldIsRefused) {
  const std::string_view both = R"({"email":"r1","x":"&email=ada&"})";
  rule({"json:/email|form:email"});
  for (const auto* type : {"application/x-www-form-urlencoded", "text/plain", ""}) {
    body(both, type);
    EXPECT_EQ(status_of(collect()), 400U) << type;
    EXPECT_EQ(describe(collect()),
              "the request has both the JSON member /email and the form field email; send one of them");
  }
  rules_[0].on_missing = OnMissing::Reject;
  EXPECT_EQ(status_of(collect()), 400U);
  body(both);
  EXPECT_EQ(charges(), 1U) << "no server reads a body as a form if its type says JSON";
  rule({"form:email|json:/email|ip"});
  body(R"({"email":"r1","x":"&email=ada&email=bob"})", "text/plain");
  EXPECT_EQ(describe(collect()), "the request body has the form field email more than once; send it once");
  rule({"json:/email|json:/user/email"});
  body(R"({"email":"r1","user":{"email":"ada"}})");
  EXPECT_EQ(status_of(collect()), 400U);
  rule({"json:/email|ip|form:email"});
  body("email=ada", "application/x-www-form-urlencoded");
  EXPECT_EQ(key_values(rules_[0], request_)[0].attribute.kind, Attribute::Ip);
}

TEST_F(BodyKeys, RequestWithTheFormFieldInItsQueryIsRefused) {
  const auto status = [&](std::string_view query, std::string_view text, std::string_view type = kFormType) {
    body(text, type);
    head_.query = query;
    const auto rejection = collect();
    return rejection ? status_of(rejection) : 200U;
  };
  for (const auto* part : {"form:email", "json:/email|form:email", "form:email|ip", "api_key|form:email"}) {
    rule({part});
    for (const auto* query : {"email=ada", "x=1&Email=ada", "email", "?email=ada", "email[]=ada",
                              "%65mail=ada", "%u0065mail=ada", "x=1;email=ada"}) {
      EXPECT_EQ(status(query, "email=r1"), 400U) << part << ' ' << query;
      EXPECT_EQ(status(query, ""), 400U) << part << ' ' << query;
      EXPECT_EQ(status(query, R"({"email":"r1"})", "application/json"), 400U) << part << ' ' << query;
    }
    for (const auto* query : {"", "emails=1", "x=email", "user[email]=1"})
      EXPECT_EQ(status(query, "email=r1"), 200U) << part << ' ' << query;
  }
  EXPECT_EQ(status("email=ada", "email=r1"), 400U);
  ASSERT_TRUE(collect());
  EXPECT_EQ(
      describe(collect()),
      "the query of the request has the form field email, or a name that some servers take for it; send "
      "the field in the request body only");
  request_.client.api_key = "k";
  EXPECT_EQ(status("email=ada", "email=r1"), 200U) << "the API key decides";
  for (const auto* part : {"json:/email", "ip", "query:email", "query:email|query:user"}) {
    rule({part});
    EXPECT_EQ(status("email=ada&user=a&user=b", R"({"email":"r1"})", "application/json"), 200U) << part;
  }
}

TEST_F(BodyKeys, FormFieldInTheQueryIsIgnoredIfTheRuleDoesNotApply) {
  rule({"user", "form:email"});
  head_ = head_with({});
  head_.query = "email=ada";
  request_.body = {};
  EXPECT_EQ(charges(), 0U) << "the request has no user";
}

TEST_F(BodyKeys, KeyMayComeFromTheQueryOrFromAForm) {
  const auto ask = [&](std::string_view query, std::string_view text, std::string_view type = kFormType) {
    body(text, type);
    head_.query = query;
    if (const auto rejection = collect()) return std::to_string(status_of(rejection));
    return key_values(rules_[0], request_)[0].value;
  };
  for (const auto* part : {"query:email|form:email", "form:email|query:email"}) {
    rule({part});
    EXPECT_EQ(ask("email=ada", ""), "ada") << part;
    EXPECT_EQ(ask("x=1", "email=bob"), "bob") << part;
    EXPECT_EQ(ask("email=ada", "email=bob"), "400") << part;
    EXPECT_EQ(ask("email=ada", "x=1"), "400") << part;
    EXPECT_EQ(ask("Email=ada", "email=bob"), "400") << part;
  }
  rule({"query:email|form:email"});
  head_ = head_with({});
  head_.query = "email=r1";
  request_.body = {};
  EXPECT_EQ(charges(), 1U) << "the request has no body";
  head_.framing = http::Framing::Chunked;
  EXPECT_EQ(collect().body, State::Unread) << "the body may have another value";
}

TEST_F(BodyKeys, RequestWithAKeyInQueryAndBodyIsRefused) {
  for (const auto* part : {"query:user|json:/email", "json:/email|query:user"}) {
    rule({part});
    body(R"({"email":"ada"})");
    head_.query = "user=r1";
    ASSERT_TRUE(collect().ambiguity) << part;
    EXPECT_EQ(collect().ambiguity->fault, BodyFault::TwoValues) << part;
    head_.query = "x=1";
    EXPECT_EQ(charges(), 1U) << part;
    body(R"({"email":null})");
    head_.query = "user=r1";
    EXPECT_EQ(charges(), 1U) << part;
  }
  body(R"({"email":"ada"})");
  head_.query = "user=r1&user=r2";
  EXPECT_TRUE(collect().ambiguity) << "the query has two values beside the body's";
  body(R"({"email":"ada"})");
  head_.query = "user=r1";
  EXPECT_EQ(describe(collect()),
            "the request has both the JSON member /email and the query parameter user; send one of them");
  rule({"query:user|json:/email"});
  EXPECT_EQ(describe(collect()),
            "the request has both the query parameter user and the JSON member /email; send one of them");
  body("{");
  head_.query = "user=r1";
  EXPECT_EQ(collect().ambiguity->fault, BodyFault::NotJson)
      << "a server may find a value where weir does not";
}

TEST_F(BodyKeys, BodyWithAnUnsuitableContentTypeIsRefused) {
  const auto refusal = [&](std::string_view type) {
    body("email=ada", type);
    return std::to_string(status_of(collect())) + " " + describe(collect());
  };
  rule({"json:/email|form:email"});
  EXPECT_EQ(refusal("application/json, application/x-www-form-urlencoded"),
            "400 rule r cannot read the JSON member /email: the Content-Type of the request is not one media "
            "type, or is one that only some servers take for that of a form; send one, such as "
            "application/json");
  EXPECT_EQ(refusal("application/x-www-form-urlencoded; charset=utf-16"),
            "415 rule r cannot read the JSON member /email: the Content-Type of the request names another "
            "charset than UTF-8; send UTF-8");
  EXPECT_EQ(refusal("multipart/form-data; boundary=x"),
            "415 rule r cannot read the form field email: the request body is a multipart form; send it as "
            "application/x-www-form-urlencoded");
  EXPECT_EQ(refusal("text/plain"),
            "400 rule r cannot read the JSON member /email: the request body is not JSON, and its "
            "Content-Type is not that of a form; send JSON in UTF-8");
  rules_[0].mode = Mode::Shadow;
  EXPECT_FALSE(collect());
}

TEST_F(BodyKeys, FormWithTooManyFieldsIsRefused) {
  rule({"form:email"});
  head_.bounds.parameters = 3;
  const auto form = [&](std::string_view text) {
    values_.clear();
    names_ = body_names(rules_);
    head_ = head_with({{"content-type", "application/x-www-form-urlencoded"}});
    head_.bounds.parameters = 3;
    values_.read(names_, head_, text);
    request_.body = {State::Whole, text, &values_};
  };
  form("a=1&b=2&email=ada");
  EXPECT_EQ(charges(), 1U);
  form("a=1&b=2&c=3&email=ada");
  EXPECT_EQ(status_of(collect()), 400U);
  EXPECT_TRUE(collect().excess);
  EXPECT_EQ(describe(collect()), "the form in the request body has too many fields");
}

TEST_F(BodyKeys, BodyIsReadOnlyIfTheHeadDoesNotDecideTheKey) {
  rule({"json:/email"});
  EXPECT_TRUE(asks());
  rules_[0].match.path = PathMatch::parse("/login").value();
  EXPECT_FALSE(asks());
  rule({"api_key|json:/email"});
  EXPECT_TRUE(asks());
  request_.client.api_key = "k";
  EXPECT_FALSE(asks());
  rule({"user", "json:/email"});
  EXPECT_FALSE(asks()) << "without a user the rule does not apply, whatever the body is";
  rules_[0].on_missing = OnMissing::Ip;
  EXPECT_TRUE(asks());
}

// The key is the query parameter or the account in the body. If weir read only the parameter, a client could
// invent parameters, and the server would use the account in the body.
TEST_F(BodyKeys, BodyIsReadEvenIfAQueryParameterAlreadyGivesTheKey) {
  head_.query = "user=r1";
  for (const auto* part :
       {"query:user|json:/email", "query:user|form:email", "query:user|api_key|json:/email"}) {
    rule({part});
    head_.framing = http::Framing::None;
    EXPECT_FALSE(asks()) << part << ": the request has no body";
    EXPECT_EQ(charges(), 1U) << part;
    for (const auto framing : {http::Framing::Length, http::Framing::Chunked}) {
      head_.framing = framing;
      EXPECT_TRUE(asks()) << part;
    }
  }
  rule({"query:user|api_key", "json:/email"});
  rules_[0].key.pop_back();
  EXPECT_FALSE(asks()) << "the key names nothing in the body";
  rule({"api_key|query:user|json:/email"});
  request_.client.api_key = "k";
  EXPECT_FALSE(asks()) << "the API key decides";
}

TEST_F(BodyKeys, ErrorNamesTheFormFieldThatOnlySomeServersFindInTheBody) {
  rule({"form:email"});
  for (const auto* text : {"email=a%u0064a", "x%u0041=1&email=ada", "email[]=ada", "x=1;email=ada"}) {
    body(text, kFormType);
    EXPECT_EQ(
        describe(collect()),
        "the request body has a text that only some servers take for the form field email; send the name "
        "as it is, ';' as %3B, and no escape such as %u0041")
        << text;
  }
}

TEST_F(BodyKeys, BodyThatCannotBeReadIsRefused) {
  rule({"json:/email"});
  request_.body = {State::TooLong};
  EXPECT_EQ(status_of(collect()), 413U);
  request_.body = {State::OverMemory};
  EXPECT_EQ(status_of(collect()), 413U);
  request_.body = {State::Coded};
  EXPECT_EQ(status_of(collect()), 415U);
  rules_[0].mode = Mode::Shadow;
  EXPECT_FALSE(collect());
}

TEST_F(BodyKeys, RuleAppliesOnlyIfAllJsonAndOtherConditionsHold) {
  model("~^gpt-4");
  body(R"({"model":"gpt-4o"})");
  EXPECT_EQ(charges(), 1U);
  body(R"({"model":"gpt-3"})");
  EXPECT_EQ(charges(), 0U);
  EXPECT_EQ(rules_[0].match.why_not(request_), "the JSON member /model is absent or does not match ~^gpt-4");
  body("{}");
  EXPECT_EQ(charges(), 0U);
  rules_[0].match.json.push_back({"/stream", TextMatch::parse("true").value()});
  body(R"({"model":"gpt-4","stream":false})");
  EXPECT_EQ(rules_[0].match.why_not(request_), "the JSON member /stream is absent or not true");
  body(R"({"model":"gpt-4","stream":true})");
  EXPECT_EQ(charges(), 1U);
  rules_[0].match.methods = {"POST"};
  EXPECT_FALSE(asks());
  EXPECT_EQ(charges(), 0U);
}

TEST_F(BodyKeys, MissingMemberMeetsNoCondition) {
  model("~");
  body("{}");
  EXPECT_EQ(charges(), 0U);
  rules_[0].match.json = {{"/model", TextMatch::present()}};
  body(R"({"model":null})");
  EXPECT_EQ(charges(), 0U);
  body(R"({"model":0})");
  EXPECT_EQ(charges(), 1U);
}

TEST_F(BodyKeys, BodyThatIsNotJsonIsRefusedIfAllOtherConditionsHold) {
  model("gpt-4");
  body("model=gpt-4");
  EXPECT_EQ(status_of(collect()), 400U);
  body(R"({"model":"x","model":"gpt-4"})");
  EXPECT_EQ(describe(collect()), "the request body has the JSON member /model more than once; send it once");
  rules_[0].match.methods = {"POST"};
  EXPECT_FALSE(collect());
}

TEST_F(BodyKeys, JsonConditionReadsAJsonBodyEvenIfTheContentTypeIsThatOfAForm) {
  model("gpt-4");
  const auto* form = "application/x-www-form-urlencoded";
  body(R"({"model":"gpt-4"})", form);
  EXPECT_EQ(charges(), 1U);
  body(R"({"model":"gpt-4","x":NaN})", form);
  EXPECT_EQ(status_of(collect()), 400U);
  body("model=gpt-4", form);
  EXPECT_EQ(charges(), 0U) << "a form has no JSON values";
  body(R"({"model":"gpt-4"})", "application/json, text/plain");
  EXPECT_EQ(status_of(collect()), 400U);
  body(R"({"model":["gpt-4"]})");
  EXPECT_EQ(charges(), 0U) << "an array meets no condition";
  body(R"({"Model":"gpt-4"})");
  EXPECT_EQ(charges(), 1U) << "some servers ignore the case of names";
}

TEST_F(BodyKeys, JsonConditionsInNegationsAndOverridesReadTheBody) {
  Match inner;
  inner.json = {{"/model", TextMatch::parse("gpt-4").value()}};
  rules_[0].match.negated = std::make_shared<const Match>(inner);
  rules_[0].max_body = 100;
  EXPECT_TRUE(asks());
  body(R"({"model":"gpt-4"})");
  EXPECT_EQ(charges(), 0U);
  body(R"({"model":"other"})");
  EXPECT_EQ(charges(), 1U);
  rule({"ip"});
  rules_[0].overrides.push_back({.tier = {}, .match = inner, .limiter = bucket(1, 1)});
  EXPECT_TRUE(asks());
  body(R"({"model":"gpt-4"})");
  ASSERT_EQ(charges(), 1U);
  EXPECT_EQ(evaluation_.local.source(0).applied.variant, 1U);
  body("{");
  EXPECT_EQ(status_of(collect()), 400U);
}

TEST_F(BodyKeys, ShownTextOfAClientOmitsValuesFromTheBody) {
  rule({"json:/email", "form:password"});
  std::array<char, 100> room{};
  EXPECT_EQ(write_client(room, rules_[0].key, request_), "json:/email form:password");
  EXPECT_FALSE(is_readable(rules_[0].key));
  EXPECT_TRUE(describe(KeyValue{{Attribute::Json, "/password"}, "x"}).starts_with("json:/password:sha256:"));
  EXPECT_EQ(describe(KeyValue{{Attribute::Json, "/email"}, "ada"}), "json:/email:ada");
}

class PathSegments : public testing::Test {
 protected:
  std::string value(std::string_view path, std::string_view part) {
    const auto rule = rule_of("r", {part});
    request_.path = path;
    return missing_part(rule, request_) != nullptr ? "" : key_values(rule, request_)[0].value;
  }
  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
};

TEST_F(PathSegments, AreCountedFromOne) {
  EXPECT_EQ(value("/org/acme/repo", "path:1"), "org");
  EXPECT_EQ(value("/org/acme/repo", "path:2"), "acme");
  EXPECT_EQ(value("/org/acme/repo", "path:3"), "repo");
  EXPECT_EQ(value("/org/acme/repo", "path:4"), "");
  EXPECT_EQ(value("/org/", "path:2"), "");
  EXPECT_EQ(value("/", "path:1"), "");
  EXPECT_EQ(value("*", "path:1"), "");
  EXPECT_EQ(value("/a%2Fb/c", "path:1"), "a%2Fb");
}

TEST_F(PathSegments, OnlyThePathSegmentThatTheRuleNamesAffectsTheKey) {
  const auto rule = rule_of("r", {"path:2"});
  const auto name = [&](std::string_view path) {
    request_.path = path;
    return name_key(rule, 0, request_, kKey);
  };
  EXPECT_EQ(name("/a/b/c"), name("/x/b"));
  EXPECT_NE(name("/a/b/c"), name("/a/c/b"));
  EXPECT_FALSE(name("/a"));
}

TEST_F(PathSegments, RequestIsRefusedIfServersMayReadAnotherSegmentAsTheKey) {
  http::PathInterpretations other{.others = {"/a/x"}, .equal = true};
  request_.path = "/a/b";
  request_.interpretations = &other;
  EXPECT_TRUE(ambiguity_in_key(rule_of("r", {"path:2"}), request_));
  EXPECT_FALSE(ambiguity_in_key(rule_of("r", {"path:1"}), request_));
  other.equal = false;
  EXPECT_FALSE(ambiguity_in_key(rule_of("r", {"path:2"}), request_));
}

TEST_F(PathSegments, SegmentNumbersMustBeFrom1To999WithoutLeadingZeros) {
  EXPECT_EQ(describe(rule_of("r", {"path:12"}).key), "[path:12]");
  for (const auto* text : {"path:0", "path:01", "path:", "path:x", "path:1000", "path:-1"})
    EXPECT_FALSE(parse_key_part(text)) << text;
  EXPECT_EQ(
      parse_key_part("json:email").error().message,
      "\"json:email\" has no JSON pointer (RFC 6901); write such as \"json:/email\" or \"json:/items/0/id\"");
}

}  // namespace
}  // namespace weir::policy
