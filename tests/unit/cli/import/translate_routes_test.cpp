#include "unit/cli/import/translation.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli::nginx {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Translate, NginxVariablesInRedirectsBecomePlaceholders) {
  const auto location = [](const std::string& answer) {
    const auto toml = of("server { server_name a.example; location / { " + answer + " } }").toml;
    const auto begin = toml.find("respond = ");
    return toml.substr(begin, toml.find('\n', begin) - begin);
  };
  EXPECT_EQ(location("return 301 https://$host$request_uri;"),
            "respond = { status = 301, location = \"https://{host}{uri}\" }");
  EXPECT_EQ(location("return 308 $scheme://$server_name/${uri};"),
            "respond = { status = 308, location = \"http://a.example/{path}\" }");
  EXPECT_EQ(location("return \"https://b.example/{x}\";"),
            "respond = { status = 302, location = \"https://b.example/{{x}}\" }");
  EXPECT_EQ(location("return 305 /text;"),
            "respond = { status = 305, body = \"/text\", content_type = \"text/plain\" }");
}

TEST(Translate, RedirectsThatWeirCannotExpressBecome404AndAreReported) {
  const auto note = [](const std::string& answer) {
    const auto result = of("server { listen 80; listen 443; location / { " + answer + " } }");
    EXPECT_THAT(result.toml, HasSubstr("respond = { status = 404 }"));
    return result.notes.empty() ? std::string() : result.notes.front();
  };
  EXPECT_THAT(note("return 301 https://a/$geo;"),
              HasSubstr("return: https://a/$geo: no placeholder for $geo; "
                        "weir answers 404. weir: respond = { status = 308"));
  EXPECT_THAT(note("return 301 https://$hostname/;"), HasSubstr("no placeholder for $hostname"));
  EXPECT_THAT(note("return 301 https://$args/;"), HasSubstr("{query} is a part of its host"));
  EXPECT_THAT(note("return 301 \"/a b\";"), HasSubstr("no equal for a URL with other characters"));
  const auto port = of("server { location / { return 301 https://$http_host$uri; } }");
  EXPECT_THAT(port.toml, HasSubstr("location = \"https://{host}{path}\""));
  EXPECT_THAT(port.notes, Contains(HasSubstr("$http_host: weir redirects to the host without its port")));
}

TEST(Translate, PathInProxyPassReplacesThePathOfTheLocation) {
  const auto of_path = [](const std::string& location, const std::string& uri) {
    return of("server { location " + location + " { proxy_pass http://127.0.0.1:1" + uri + "; } }");
  };
  EXPECT_THAT(of_path("/api/", "/").toml, HasSubstr("upstream = \"127.0.0.1:1\"\nstrip_prefix = \"/api\"\n"));
  EXPECT_THAT(of_path("/", "/v2/").toml, HasSubstr("upstream = \"127.0.0.1:1\"\nadd_prefix = \"/v2\"\n"));
  EXPECT_THAT(of_path("/a.b", "/c").toml,
              HasSubstr("rewrite = { pattern = \"^/a\\\\.b(.*)$\", to = \"/c{1}\" }\n"));
  EXPECT_THAT(of_path("= /a", "/c").toml, HasSubstr("rewrite = { pattern = \"^/a$\", to = \"/c\" }\n"));
  EXPECT_THAT(of_path("/a", "/").notes, Contains(HasSubstr("weir writes one slash where nginx writes two")));
  for (const auto& [location, uri] : {std::pair("/a/", "/b/../c"), std::pair("/a b", "/c"),
                                      std::pair("/a", "/c?d=e"), std::pair("~ ^/a", "/c")}) {
    const auto result = of_path("\"" + std::string(location) + "\"", uri);
    EXPECT_THAT(result.notes, Contains(HasSubstr("not imported; weir forwards the path as it came"))) << uri;
  }
}

TEST(Translate, ProxySetHeaderVariablesBecomePlaceholders) {
  const auto result = of_location(
      "proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-A a;"
      "proxy_set_header x-a b; proxy_set_header Accept-Encoding \"\"; proxy_set_header X-B $b;"
      "proxy_set_header X-Forwarded-Proto $scheme;");
  EXPECT_THAT(
      result.toml,
      HasSubstr("headers.request = { set = { X-Real-IP = \"{client_ip}\", X-A = \"a\" }, add = { x-a = "
                "\"b\" }, remove = [\"Accept-Encoding\", \"X-B\"] }\n"));
  EXPECT_THAT(result.notes,
              ElementsAre(HasSubstr("proxy_set_header: X-B: no placeholder for $b; weir import leaves")));
  EXPECT_THAT(of("server { location / { proxy_pass http://a; proxy_set_header Host $hostname; } }").notes,
              Contains(HasSubstr("proxy_set_header: Host: no equal")));
}

TEST(Translate, ProxySetHeaderThatCannotBeTranslatedRemovesTheFieldFromRequests) {
  const auto result = of_location(
      "proxy_set_header X-User $remote_user; proxy_set_header Cookie $http_cookie;"
      "proxy_set_header X-A $http_x_b;");
  EXPECT_THAT(result.toml, HasSubstr("headers.request = { remove = [\"X-User\", \"X-A\"] }\n"));
  EXPECT_THAT(result.notes,
              ElementsAre(HasSubstr("X-User: no placeholder for $remote_user; weir import leaves"),
                          HasSubstr("X-A: no placeholder for $http_x_b")));
}

TEST(Translate, WeirAcceptsEveryTranslatedHeaderField) {
  for (const std::string name : {"Connection",
                                 "Content-Length",
                                 "Keep-Alive",
                                 "Proxy-Connection",
                                 "TE",
                                 "Trailer",
                                 "Transfer-Encoding",
                                 "Upgrade",
                                 "HTTP2-Settings",
                                 "Sec-WebSocket-Key",
                                 "Content-Encoding",
                                 "Content-Range",
                                 "Host",
                                 "Expect",
                                 "X-Forwarded-For",
                                 "X-Forwarded-Host",
                                 "X-Forwarded-Proto",
                                 "Forwarded",
                                 "X-Request-ID",
                                 "Via",
                                 "Max-Forwards",
                                 "Accept-Encoding",
                                 "Range",
                                 "If-Range",
                                 "RateLimit",
                                 "X-RateLimit-Limit",
                                 "Retry-After",
                                 "Date",
                                 "WWW-Authenticate",
                                 "grpc-status",
                                 "Location",
                                 "Refresh",
                                 "Content-Type",
                                 "Cache-Control",
                                 "Access-Control-Allow-Origin",
                                 "X_A",
                                 "a.b",
                                 "X-Forwarded_For"}) {
    (void)of_location("proxy_set_header " + name + " a;");  // fails the test if weir rejects the result
    (void)of_location("proxy_set_header " + name + " \"\";");
    (void)of_location("add_header " + name + " a always;");
    (void)of_location("proxy_hide_header " + name + ";");
    (void)of("server { location / { return 200 a; add_header " + name + " a; } }");
  }
}

TEST(Translate, AddHeaderDirectivesBecomeResponseHeaders) {
  const auto result =
      of("add_header X-A a always; add_header X-B b; proxy_hide_header X-C; server {\n"
         "location / { proxy_pass http://127.0.0.1:1; } location /own/ { add_header X-D d always; "
         "return 200 a; } }");
  EXPECT_THAT(result.toml, HasSubstr("headers.response = { add = { X-A = \"a\", X-B = \"b\" }, remove = "
                                     "[\"X-C\"] }\n"));
  EXPECT_THAT(result.toml, HasSubstr("content_type = \"text/plain\", headers = { X-D = \"d\" } }\n"));
  EXPECT_THAT(result.notes, Contains("n.conf:1: add_header: X-B: weir adds the field to answers of every "
                                     "status, as nginx with always"));
  EXPECT_THAT(result.notes, Not(Contains(HasSubstr("X-A"))));
}

}  // namespace
}  // namespace weir::cli::nginx
