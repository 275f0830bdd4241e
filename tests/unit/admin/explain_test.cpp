#include "admin/pages/admission.hpp"

#include "weir/net/reactor.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

using ::testing::HasSubstr;

class ExplainTest : public ::testing::Test {
 protected:
  // Returns the page's answer. Runs the page's coroutine until it completes; no page waits in these tests.
  Answer ask(const PageRequest& question) {
    const auto admitted = admit({Token(""), {.host = "127.0.0.1", .port = 9900, .unix_path = {}}}, question);
    if (const auto* refusal = std::get_if<Answer>(&admitted)) return *refusal;
    Answer answer;
    const auto handler = std::get<Page::AsyncHandler>(std::get<const Page*>(admitted)->handler);
    net::asio::io_context io;
    net::spawn(io.get_executor(), keep(handler(sources_, question, io.get_executor()), answer),
               [](const std::exception_ptr& failure) { EXPECT_FALSE(failure); });
    io.run();
    return answer;
  }
  static net::Task<void> keep(net::Task<Answer> asked, Answer& answer) { answer = co_await asked; }
  Answer explain(std::string_view body, std::string_view type = "application/json") {
    return ask({.method = "POST",
                .target = "/api/explain",
                .content_type = type,
                .has_body = !body.empty(),
                .body = body});
  }
  Answer keys(std::string_view target, std::string_view method = "GET") {
    return ask({.method = method, .target = target, .peer = "127.0.0.1:5"});
  }

  ExplainTest() {
    sources_.explain = [this](policy::ExplainRequest explain_request) {
      return remember(std::move(explain_request));
    };
    sources_.keys = [this](KeyRequest question) { return remember(std::move(question)); };
  }
  net::Task<policy::Explanation> remember(policy::ExplainRequest explain_request) {
    explain_request_ = std::move(explain_request);
    co_return explanation_;
  }
  net::Task<KeyResponse> remember(KeyRequest question) {
    question_ = std::move(question);
    co_return key_answer_;
  }

  Sources sources_;
  policy::ExplainRequest explain_request_;
  policy::Explanation explanation_;
  KeyRequest question_;
  KeyResponse key_answer_;
};

TEST_F(ExplainTest, ReadsEveryJsonMemberOfTheRequest) {
  EXPECT_EQ(explain(R"({"method":"POST","host":"a.example","path":"/x?y=1","ip":"2001:db8::1",
                        "headers":{"X-A":"1","Cookie":["a=1","b=2"]},"body":"{}","certificate":"CN=a",
                        "scheme":"http","listener":"edge"})")
                .status,
            200U);
  EXPECT_EQ(explain_request_.method, "POST");
  EXPECT_EQ(explain_request_.host, "a.example");
  EXPECT_EQ(explain_request_.target, "/x?y=1");
  EXPECT_EQ(explain_request_.peer, base::IpAddress::parse("2001:db8::1"));
  const std::vector<std::pair<std::string, std::string>> headers{
      {"X-A", "1"}, {"Cookie", "a=1"}, {"Cookie", "b=2"}};
  EXPECT_EQ(explain_request_.headers, headers);
  EXPECT_EQ(explain_request_.body, "{}");
  EXPECT_EQ(explain_request_.certificate_subject, "CN=a");
  EXPECT_FALSE(explain_request_.secure);
  EXPECT_EQ(explain_request_.listener, "edge");
}

TEST_F(ExplainTest, AnswersAnInvalidRequestWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"rubbish", "is not a JSON object of method, host, path"},
      {"[]", "is not a JSON object"},
      {R"({"methode":"GET"})", R"(there is no member \"methode\"; expected one of method, host, path, ip)"},
      {R"({"ip":"nobody"})", R"(\"ip\" is not an IP address)"},
      {R"({"scheme":"ftp"})", R"(\"scheme\" is neither)"},
      {R"({"path":7})", R"(\"path\" is not a string)"},
      {R"({"headers":["a"]})", R"(\"headers\" is not an object)"},
      {R"({"headers":{"X-A":7}})", R"(\"X-A\" is not a string)"}};
  for (const auto& [body, what] : cases) {
    const auto said = explain(body);
    EXPECT_EQ(said.status, 400U) << body;
    EXPECT_THAT(said.body, HasSubstr(what));
  }
}

// An HTML form on another site can send only three content types. The page rejects all of them, whatever
// Origin the browser sends.
TEST_F(ExplainTest, RejectsRequestsThatAnHtmlFormOnAnotherSiteCanSend) {
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"})
    EXPECT_EQ(explain("{}", type).status, 415U) << type;
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8"})
    EXPECT_EQ(explain("{}", type).status, 200U) << type;
  PageRequest question{.method = "DELETE", .target = "/api/keys?rule=r", .origin = "http://evil.example"};
  EXPECT_EQ(ask(question).status, 403U);
  question.origin = {};
  question.fetch_site = "cross-site";
  EXPECT_EQ(ask(question).status, 403U);
}

TEST_F(ExplainTest, GetRequestNeverResetsAKey) {
  const auto said = ask({.method = "GET", .target = "/api/explain"});
  EXPECT_EQ(said.status, 405U);
  EXPECT_EQ(said.allow, "POST");
  EXPECT_EQ(ask({.method = "PUT", .target = "/api/keys"}).allow, "GET, HEAD, DELETE");
  EXPECT_EQ(keys("/api/keys?rule=r").status, 200U);
  EXPECT_FALSE(question_.reset);
  EXPECT_EQ(keys("/api/keys?rule=r", "DELETE").status, 200U);
  EXPECT_TRUE(question_.reset);
  EXPECT_EQ(question_.peer, "127.0.0.1:5");
}

TEST_F(ExplainTest, PartsOfAKeyInTheQueryAreDecodedAndKeepTheirOrder) {
  EXPECT_EQ(keys("/api/keys?rule=per%2Dkey&key=ip%3A203.0.113.7&key=a+b").status, 200U);
  EXPECT_EQ(question_.rule, "per-key");
  EXPECT_EQ(question_.key, (std::vector<std::string>{"ip:203.0.113.7", "a b"}));
  EXPECT_THAT(keys("/api/keys").body, HasSubstr("the parameter rule is missing"));
  EXPECT_THAT(keys("/api/keys?rule=r&kye=1").body, HasSubstr(R"(no parameter \"kye\")"));
  EXPECT_EQ(keys("/api/keys?rule=a&rule=b").status, 400U);
}

TEST_F(ExplainTest, UnknownRuleGets404WithTheKnownRules) {
  key_answer_ = {.status = 404, .error = "there is no rule \"r\": there are login"};
  const auto said = keys("/api/keys?rule=r");
  EXPECT_EQ(said.status, 404U);
  EXPECT_THAT(said.body, HasSubstr("there are login"));
}

TEST_F(ExplainTest, TimesInTheAnswerAreSecondsAndAnEndlessWaitIsNull) {
  policy::LimitState state{
      .choice = "tier pro", .limiter = "gcra 1/s, burst 0", .store = "redis", .note = {}, .digest = "ab"};
  state.known = true;
  state.outcome = {.retry_after = base::kForever, .reset_after = base::Duration(2'500'000)};
  state.limit = 1;
  key_answer_.limits = {state};
  state.outcome = {.allowed = true, .delay = base::Duration(250'000)};
  key_answer_.limits.push_back(state);
  state.known = false;
  key_answer_.limits.push_back(state);
  const auto said = boost::json::parse(keys("/api/keys?rule=r").body);
  const auto& limits = said.at("limits").as_array();
  EXPECT_EQ(limits[0].at("says").as_string(), "refuse");
  EXPECT_TRUE(limits[0].at("retry_after_seconds").is_null());
  EXPECT_EQ(limits[0].at("reset_after_seconds").as_double(), 2.5);
  EXPECT_EQ(limits[0].at("chosen_by").as_string(), "tier pro");
  EXPECT_EQ(limits[1].at("says").as_string(), "delay");
  EXPECT_EQ(limits[1].at("delay_seconds").as_double(), 0.25);
  EXPECT_EQ(limits[2].at("says").as_string(), "unknown");
  EXPECT_FALSE(limits[2].as_object().contains("remaining"));
}

}  // namespace
}  // namespace weir::admin
