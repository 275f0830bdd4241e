#include "weir/policy/explain_request.hpp"

#include "unit/policy/sample.hpp"

#include "weir/http/target.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

class ExplainRequestTest : public testing::Test {
 protected:
  // Reads the description of a request for host "a". `change` edits the description first.
  template <class Change>
  std::optional<http::Fault> read(Change change) {
    ExplainRequest explain_request;
    explain_request.host = "a";
    change(explain_request);
    return described_.emplace().read(explain_request, settings_,
                                     {base::TimePoint(base::Duration(7)), base::TimePoint(base::Duration(9))},
                                     0.5);
  }

  ClientSettings settings_;
  std::optional<DescribedRequest> described_;
};

TEST_F(ExplainRequestTest, SeesPathsAndHostsInNormalForm) {
  for (const char* target : {"/a/b", "/a/../b?c", "//a", "/%61", "http://Other:1/a", "http://other", "/a;b"})
    for (const char* host : {"example.com", "Example.COM:80", "example.com.", "[::1]:80"}) {
      ASSERT_FALSE(read([&](ExplainRequest& explain_request) {
        explain_request.target = target;
        explain_request.host = host;
      }));
      const auto& request = described_->request();
      std::string scratch;
      EXPECT_EQ(request.path, http::normalise_path(request.head->path, scratch)) << target;
      EXPECT_EQ(request.host, http::normalise_host(request.head->authority, scratch)) << target << host;
    }
}

TEST_F(ExplainRequestTest, IsParsedLikeARealRequest) {
  settings_.trusted_proxies = {cidr("10.0.0.0/8")};
  ASSERT_FALSE(read([](ExplainRequest& explain_request) {
    explain_request.method = "POST";
    explain_request.host = "API.example.com:80";
    explain_request.target = "/a/./b/../c?x=1";
    explain_request.peer = ip("10.0.0.1");
    explain_request.headers = {{"X-Forwarded-For", "203.0.113.7"}, {"X-API-Key", "k"}};
    explain_request.body = "{}";
  }));
  const auto& request = described_->request();
  EXPECT_EQ(request.path, "/a/c");
  EXPECT_EQ(request.host, "api.example.com");
  EXPECT_EQ(request.head->query, "x=1");
  EXPECT_EQ(request.client.address, ip("203.0.113.7"));
  EXPECT_EQ(request.client.api_key, "k");
  EXPECT_EQ(request.head->content_length, 2U);
  EXPECT_EQ(request.now, base::TimePoint(base::Duration(7)));
  EXPECT_EQ(request.load, 0.5);
}

TEST_F(ExplainRequestTest, InvalidRequestGetsTheSameErrorAsARealRequest) {
  const auto status = [&](auto change) {
    const auto fault = read(change);
    return fault ? fault->status : 0;
  };
  EXPECT_EQ(status([](ExplainRequest&) {}), 0U);
  EXPECT_EQ(status([](ExplainRequest& explain_request) { explain_request.method = "get"; }), 400U);
  EXPECT_EQ(status([](ExplainRequest& explain_request) { explain_request.host = ""; }), 400U);
  EXPECT_EQ(status([](ExplainRequest& explain_request) {
              explain_request.headers = {{"X-A", "1\r\nX-B: 2"}};
            }),
            400U);
  EXPECT_EQ(status([](ExplainRequest& explain_request) {
              explain_request.target = "/ HTTP/1.1\r\nX-B: 2\r\n\r\n";
            }),
            400U);
  EXPECT_EQ(status([](ExplainRequest& explain_request) {
              explain_request.headers = {{"Content-Length", "1x"}};
            }),
            400U);
}

TEST_F(ExplainRequestTest, RequestWithoutAHostGetsTheFirstHostThatHasAMatchingRoute) {
  std::vector<Route> routes(4);
  routes[0].match.methods = {"POST"};
  routes[1].match.hosts = {*HostMatch::parse("*.example.com")};
  routes[1].match.path = PathMatch::parse("/shop/*").value();
  routes[2].match.hosts = {*HostMatch::parse("api.example.com")};
  routes[2].match.methods = {"GET"};
  routes[2].match.path = PathMatch::parse("/a*").value();
  routes[3].match.path = PathMatch::parse("/open").value();
  ExplainRequest explain_request;
  explain_request.host.reset();
  const auto host = [&](const char* target) {
    explain_request.target = target;
    return host_for_route(explain_request, routes, settings_, {}, 0);
  };
  EXPECT_EQ(host("/shop/1"), "www.example.com");
  EXPECT_EQ(host("/api"), "api.example.com");
  EXPECT_EQ(host("/open"), "localhost");
  EXPECT_EQ(host("/nowhere"), "localhost");
  explain_request.headers = {{"host", "b"}};
  EXPECT_EQ(host("/api"), std::nullopt);
  explain_request = {};
  EXPECT_EQ(host("/api"), std::nullopt);  // the description says that the request has no host
}

TEST_F(ExplainRequestTest, BodyIsCutToThePartThatRulesRead) {
  Rule rule = rule_of("words", {"ip"});
  rule.match.body_words = {"drop"};
  rule.match.max_body = rule.max_body = 4;
  const auto state = [&](std::string body, std::vector<std::pair<std::string, std::string>> headers = {}) {
    EXPECT_FALSE(read([&](ExplainRequest& explain_request) {
      explain_request.headers = std::move(headers);
      explain_request.body = std::move(body);
    }));
    described_->show_body({&rule, 1});
    return described_->request().body.state;
  };
  EXPECT_EQ(state(""), RequestBody::State::Whole);
  EXPECT_EQ(state("drop"), RequestBody::State::Whole);
  EXPECT_EQ(described_->request().body.text, "drop");
  EXPECT_EQ(state("drop!"), RequestBody::State::TooLong);
  EXPECT_EQ(state("drop", {{"Content-Encoding", "gzip"}}), RequestBody::State::Coded);
}

TEST_F(ExplainRequestTest, QuestionHasADomainAndOneDescriptorAndNeedsNoHost) {
  ASSERT_FALSE(read([](ExplainRequest& explain_request) {
    explain_request.host = "";
    explain_request.question = {.domain = "edge", .descriptor = {{"user", "ada"}}, .exact = true, .cost = 5};
  }));
  const auto& request = described_->request();
  EXPECT_EQ(request.domain, "edge");
  ASSERT_EQ(request.descriptors.size(), 1U);
  EXPECT_EQ(request.descriptors[0].value_of("user"), "ada");
  EXPECT_TRUE(request.descriptors[0].exact);
  EXPECT_EQ(request.stated_cost, 5U);
  EXPECT_EQ(request.host, "");
  ASSERT_FALSE(read([](ExplainRequest&) {}));
  EXPECT_TRUE(described_->request().descriptors.empty()) << "no question";
}

}  // namespace
}  // namespace weir::policy
