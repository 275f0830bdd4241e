// Tests the exact messages about mistakes in routes that change requests, change answers or answer by
// themselves.
#include "unit/config/warnings.hpp"
#include "unit/config/wrong_configuration.hpp"

#include "weir/config/differences.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns a configuration with a route "r" on line 11. The text `more` begins on line 14.
std::string forwarding(const std::string& more) {
  return with("[[route]]\nname = \"r\"\nupstream = \"api\"\n" + more);
}
// Returns a configuration with a route "r" on line 11, which has no upstream. The text `more` begins on line
// 13.
std::string answering(const std::string& more) {
  return with("[[route]]\nname = \"r\"\n" + more);
}
std::string request_set(const std::string& field) {
  return forwarding("headers.request.set = { " + field + " }\n");
}
std::string redirect(const std::string& location, const std::string& status = "308") {
  return answering("respond = { status = " + status + ", location = \"" + location + "\" }\n");
}

const WrongConfiguration kWrongEdits[] = {
    {"RouteCalledNone",
     with("[[route]]\nname = \"none\"\nupstream = \"api\"\n"),
     {"weir.toml:12: route[none].name: found \"none\", which metrics call requests without a route; expected "
      "another name"}},
    {"PlaceholderUnknown",
     request_set("X-A = \"{hots}\""),
     {"weir.toml:14: route[r].headers.request.set.X-A: found \"{hots}\"; {hots} is no placeholder; expected "
      "one "
      "of {host} {uri} {path} {query} {method} {client_ip} {user} {org} {tier} {service} {request_id} "
      "{cert_subject} {cert_der}"}},
    {"PlaceholderWithoutCertificates",
     request_set("X-A = \"{cert_subject}\""),
     {"weir.toml:14: route[r].headers.request.set.X-A: found {cert_subject}, but no listener asks clients "
      "for "
      "certificates; expected client_ca in the tls of a [[listener]]"}},
    {"BraceAlone",
     request_set("X-A = \"a{b\""),
     {"weir.toml:14: route[r].headers.request.set.X-A: found \"a{b\"; a brace has no partner; expected a "
      "placeholder such as {host}, or {{ for the character itself"}},
    {"FieldWithALineBreak",
     request_set("X-A = \"a\\r\\nX-B: c\""),
     {"weir.toml:14: route[r].headers.request.set.X-A: found control characters, blanks at an end or no "
      "text; "
      "expected the value of a header field"}},
    {"FieldWithoutText",
     request_set("X-A = \"\""),
     {"weir.toml:14: route[r].headers.request.set.X-A: found control characters, blanks at an end or no "
      "text; "
      "expected the value of a header field"}},
    {"FieldOfANumber",
     request_set("X-A = 5"),
     {"weir.toml:14: route[r].headers.request.set.X-A: found a whole number; expected a text"}},
    {"FieldName",
     request_set("\"X A\" = \"a\""),
     {"weir.toml:14: route[r].headers.request.set.X A: found an invalid name; expected a name such as "
      "\"X-Tenant\""}},
    {"HostOfTheRequest",
     request_set("Host = \"a\""),
     {"weir.toml:14: route[r].headers.request.set.Host: found \"Host\", which the upstream decides; "
      "write host = \"api.internal\" in the [[upstream]]"}},
    {"CertificateThatNoListenerAsksFor",
     request_set("Client-Cert = \"{cert_der}\""),
     {"weir.toml:14: route[r].headers.request.set.Client-Cert: found {cert_der}, but no listener asks "
      "clients "
      "for certificates; expected client_ca in the tls of a [[listener]]"}},
    {"LengthOfTheRequest",
     request_set("content-length = \"0\""),
     {"weir.toml:14: route[r].headers.request.set.content-length: found \"content-length\", which frames "
      "messages or belongs to one connection; remove it"}},
    {"ForwardedForInAnotherSpelling",
     request_set("X_Forwarded_For = \"{client_ip}\""),
     {"weir.toml:14: route[r].headers.request.set.X_Forwarded_For: found \"X_Forwarded_For\", which weir "
      "writes itself; remove it ([client] trusted_proxies says whose value weir keeps)"}},
    {"RemovedPrefixOfAFieldThatWeirWrites",
     forwarding("headers.request.remove = [\"X-Debug-*\", \"X-*\"]\n"),
     {"weir.toml:14: route[r].headers.request.remove: found \"X-*\", which weir writes itself; remove it "
      "([client] trusted_proxies says whose value weir keeps)"}},
    {"RemovedNameWithAWildcardInside",
     forwarding("headers.response.remove = [\"X-*-A\"]\n"),
     {"weir.toml:14: route[r].headers.response.remove: found an invalid name; expected a name such as "
      "\"X-Tenant\", or \"X-Debug-*\""}},
    {"CodingOfTheRequest",
     request_set("Accept-Encoding = \"gzip\""),
     {"weir.toml:14: route[r].headers.request.set.Accept-Encoding: found \"Accept-Encoding\", which weir "
      "itself "
      "changes where a rule reads the answer; write headers.request.remove instead, or remove it"}},
    {"CodingOfTheResponse",
     forwarding("headers.response.remove = [\"Content-*\"]\n"),
     {"weir.toml:14: route[r].headers.response.remove: found \"Content-*\", which frames messages or belongs "
      "to "
      "one connection; remove it"}},
    {"LimitsOfTheResponse",
     forwarding("headers.response.add = { X-RateLimit-Limit = \"5\" }\n"),
     {"weir.toml:14: route[r].headers.response.add.X-RateLimit-Limit: found \"X-RateLimit-Limit\", which "
      "weir "
      "writes itself; remove it ([server] ratelimit_headers chooses its fields)"}},
    {"CorsOfTheResponse",
     forwarding(
         "headers.response.set = { Access-Control-Allow-Origin = \"*\" }\n[cors]\norigins = [\"*\"]\n"),
     {"weir.toml:14: route[r].headers.response.set.Access-Control-Allow-Origin: found "
      "\"Access-Control-Allow-Origin\", which weir writes itself because of [cors]; remove it"}},
    {"ResponseFieldWithItsOwnKey",
     answering("respond = { headers = { Location = \"/a\" } }\n"),
     {"weir.toml:13: route[r].respond.headers.Location: found \"Location\", which has a key of its own; "
      "write "
      "respond.location instead"}},
    {"RequestOfARespondRoute",
     answering("respond = {}\nheaders.request.remove = [\"X-A\"]\n"),
     {"weir.toml:14: route[r].headers.request: found beside respond, but weir forwards no request of this "
      "route; remove this key"}},
    {"PathOfARespondRoute",
     answering("respond = {}\nstrip_prefix = \"/a\"\n"),
     {"weir.toml:14: route[r].strip_prefix: found beside respond, but weir forwards no request of this "
      "route; "
      "remove this key"}},
    {"PrefixWithASlash",
     forwarding("strip_prefix = \"/a/\"\n"),
     {"weir.toml:14: route[r].strip_prefix: found \"/a/\"; expected \"/a\", without the slash at its end"}},
    {"PrefixWithDots",
     forwarding("add_prefix = \"/a/../b\"\n"),
     {"weir.toml:14: route[r].add_prefix: found \"/a/../b\"; expected a path in normal form: \"/b\""}},
    {"RewriteBesidePrefix",
     forwarding("strip_prefix = \"/a\"\nrewrite = { pattern = \"a\", to = \"/\" }\n"),
     {"weir.toml:15: route[r].rewrite: found beside strip_prefix or add_prefix; expected one way to change "
      "the "
      "path"}},
    {"RewriteWithoutSlash",
     forwarding("rewrite = { pattern = \"^/(.*)$\", to = \"{1}\" }\n"),
     {"weir.toml:14: route[r].rewrite.to: found \"{1}\"; expected a path that begins with \"/\", where x "
      "stands "
      "for a group"}},
    {"RewriteOfNoExpression",
     forwarding("rewrite = { pattern = \"^/(.*$\", to = \"{1}\" }\n"),
     {"weir.toml:14: route[r].rewrite.pattern: found \"^/(.*$\"; expected a regular expression such as "
      "\"^/old/(.*)$\": missing ): ^/(.*$"}},
    {"RewriteOfNoPath",
     forwarding("rewrite = { pattern = \"^/caf\xc3\xa9\", to = \"/tea\" }\n"),
     {"weir.toml:14: route[r].rewrite.pattern: found \"^/caf\xc3\xa9\"; it can never match, because paths "
      "are "
      "ASCII; write other characters as %XX of their UTF-8"}},
    {"RewriteWithAQuery",
     forwarding("rewrite = { pattern = \"^/(.*)$\", to = \"/find?q={1}\" }\n"),
     {"weir.toml:14: route[r].rewrite.to: found \"/find?q={1}\"; expected a path without \"?\" and \"#\"; "
      "weir "
      "forwards the query as it is, where x stands for a group"}},
    {"LocationOfAnotherStatus",
     redirect("/a", "200"),
     {"weir.toml:13: route[r].respond.location: found \"/a\" beside status = 200, which redirects nowhere; "
      "expected the status 301, 302, 303, 307 or 308"}},
    {"LocationWithABlank",
     redirect("/a b"),
     {"weir.toml:13: route[r].respond.location: found \"/a b\"; expected a URL without blanks and with other "
      "characters than ASCII as %XX"}},
    {"LocationWhoseHostClientsChoose",
     redirect("https://{query}"),
     {"weir.toml:13: route[r].respond.location: found \"https://{query}\", but {query} is a part of its "
      "host, so "
      "that clients could choose where weir sends others; expected \"https://{host}{uri}\", or a \"/\" "
      "before "
      "{query}"}},
    {"LocationThatMayNameAHost",
     redirect("/{path}"),
     {"weir.toml:13: route[r].respond.location: found \"/{path}\", but browsers read \"//\" at its beginning "
      "as "
      "the name of a host; expected \"https://{host}{uri}\", or one \"/\" before a name"}},
};

class RouteEditMistakes : public ::testing::TestWithParam<WrongConfiguration> {};

TEST_P(RouteEditMistakes, ErrorNamesTheLineTheKeyAndTheExpectedValue) {
  EXPECT_THAT(mistakes_in(GetParam().text), ::testing::ElementsAreArray(GetParam().mistakes));
}

INSTANTIATE_TEST_SUITE_P(InvalidConfigurations, RouteEditMistakes, ::testing::ValuesIn(kWrongEdits),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(RouteEdits, RouteThatSetsTooManyOrTooLargeHeaderFieldsIsRejected) {
  std::string many, large = "X-A = \"" + std::string(8192, 'a') + "\"";
  for (int i = 0; i < 33; ++i) many += (i == 0 ? "X-" : ", X-") + std::to_string(i) + " = \"a\"";
  EXPECT_THAT(mistakes_in(request_set(many)), Contains(HasSubstr("found 33 fields of")));
  EXPECT_THAT(mistakes_in(request_set(large)),
              Contains(HasSubstr("found 1 fields of 8195 bytes; expected at most")));
}

TEST(RouteEdits, RouteMaySetCorsResponseFieldsIfThereIsNoCorsTable) {
  EXPECT_THAT(mistakes_in(forwarding("headers.response.set = { Access-Control-Allow-Origin = \"*\" }\n")),
              IsEmpty());
}

TEST(RouteEdits, RouteWithoutHeaderSettingsChangesNoHeaderFields) {
  EXPECT_EQ(parse(forwarding("")).routes[1].edits, nullptr);
  EXPECT_EQ(parse(forwarding("headers = {}\n")).routes[1].edits, nullptr);
}

TEST(RouteEdits, DescriptionOmitsTheValuesOfRequestHeaders) {
  const auto text =
      describe(parse(forwarding("strip_prefix = \"/a\"\nheaders.request = { set = { Authorization = "
                                "\"s3cret\" }, remove = [\"X-B\"] }\nheaders.response.add = { X-C = "
                                "\"{host}\" }\n")));
  EXPECT_THAT(text,
              HasSubstr("    path: without /a at its beginning\n    request headers: set Authorization, "
                        "remove X-B\n    response headers: add X-C: {host}\n"));
  EXPECT_THAT(text, Not(HasSubstr("s3cret")));
  EXPECT_THAT(describe(parse(redirect("https://{host}{uri}"))),
              HasSubstr("-> answer 308 to https://{host}{uri}"));
  EXPECT_THAT(describe(parse(forwarding("rewrite = { pattern = \"^/a(.*)$\", to = \"/b{1}\" }\n"))),
              HasSubstr("    path: rewritten from ^/a(.*)$ to /b{1}\n"));
}

TEST(RouteEdits, ReloadReportsChangedRequestHeaderValuesWithoutShowingThem) {
  const auto of = [](const std::string& value) { return parse(request_set("X-A = \"" + value + "\"")); };
  EXPECT_THAT(unshown_differences(of("s3cret"), of("other")),
              ::testing::ElementsAre("now: route \"r\" sends its servers other values in header fields"));
  EXPECT_THAT(unshown_differences(of("s3cret"), of("s3cret")), IsEmpty());
}

TEST(RouteEdits, WarningNamesAPlaceholderThatIsAlwaysEmpty) {
  const auto warned =
      Contains(HasSubstr("writes {org}, which is always empty: write org or keys in [client]"));
  EXPECT_THAT(warnings_of(request_set("X-Org = \"{org}\"")), warned);
  EXPECT_THAT(warnings_of(request_set("X-Org = \"{org}\"") + "[client]\norg = { header = \"X-O\" }\n"),
              Not(warned));
}

TEST(RouteEdits, WarningNamesARedirectStatusWithoutALocation) {
  const auto warned = Contains(HasSubstr("answers 302 without a target"));
  EXPECT_THAT(warnings_of(answering("respond = { status = 302 }\n")), warned);
  EXPECT_THAT(warnings_of(redirect("/a", "302")), Not(warned));
}

}  // namespace
}  // namespace weir::config::test
