// Tests that weir import admits no request that nginx refuses, except where its report says so.
#include "cli/import/syntax/nginx_parser.hpp"
#include "cli/import/translate.hpp"

#include "weir/config/config_errors.hpp"
#include "weir/config/settings.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli::nginx {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct Imported {
  std::string toml;
  std::vector<std::string> notes;
};

// Translates a text, and checks that weir accepts the result.
Imported imported(const std::string& text, const std::string& file = "n.conf") {
  auto parsed = parse_nginx(text, file);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  Notes notes;
  const auto toml = translate(*parsed, "/etc/nginx", notes);
  Imported result{toml ? *toml : "fault: " + toml.error().message, {}};
  for (const auto& note : notes.sorted()) result.notes.push_back(note.line());
  if (!toml) return result;
  try {
    (void)config::parse_settings(*toml, "weir.toml");
  } catch (const config::ConfigError& error) {
    ADD_FAILURE() << error.what() << '\n' << *toml;
  }
  return result;
}

// Translates a server with one location "/", which forwards requests.
Imported imported_location(const std::string& location, const std::string& server = "",
                           const std::string& http = "") {
  return imported(http + " server { " + server + " location / { " + location +
                  " proxy_pass http://127.0.0.1:1; } }");
}

bool forwards(const Imported& result) {
  return result.toml.find("\nupstream = ") != std::string::npos;
}

TEST(ImportAccess, OffDisablesOnlyTheAuthDirectiveThatItBelongsTo) {
  EXPECT_FALSE(forwards(imported_location("auth_basic off;", "auth_request /auth;")));
  EXPECT_FALSE(forwards(imported_location("auth_request off;", "auth_basic x;")));
  EXPECT_FALSE(forwards(imported_location("auth_jwt x; auth_basic off;")));
  EXPECT_TRUE(
      forwards(imported_location("auth_basic off; auth_request off;", "auth_basic x; auth_request /a;")));
}

TEST(ImportAccess, LocationWithAnUnknownAuthDirectiveForwardsNoRequest) {
  for (const char* guard : {"auth_pam x;", "auth_ldap x;", "access_by_lua_file a.lua;",
                            "access_by_lua_block { deny() }", "auth_jwt_require $a;", "modsecurity on;",
                            "js_access a.check;", "app_protect_enable on;", "SecRulesEnabled;"})
    EXPECT_FALSE(forwards(imported_location(guard))) << guard;
  EXPECT_TRUE(forwards(imported_location("auth_basic_user_file a; auth_pam off;")));
  EXPECT_TRUE(forwards(imported_location("modsecurity off; modsecurity_rules_file a;", "modsecurity on;")));
}

constexpr const char* kProxies = "set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For;";

TEST(ImportAccess, TrustedProxiesAreNotTranslatedIfNginxFindsTheClientAddressInAnotherWay) {
  const std::string whole = std::string(kProxies) + "real_ip_recursive on;";
  EXPECT_THAT(imported_location("", "", whole).toml, HasSubstr("trusted_proxies = [\"127.0.0.0/8\"]"));
  for (const auto& other :
       {std::string(kProxies), whole + "set_real_ip_from host.example;",
        std::string("set_real_ip_from 127.0.0.0/8; real_ip_header proxy_protocol; real_ip_recursive on;")}) {
    const auto result = imported_location("", "", other);
    EXPECT_THAT(result.toml, Not(HasSubstr("trusted_proxies"))) << other;
    EXPECT_THAT(result.notes, Contains(HasSubstr("n.conf:1: set_real_ip_from: "))) << other;
  }
}

TEST(ImportAccess, TrustedProxiesAreNotTranslatedIfServersTrustDifferentProxies) {
  const auto two = [](const std::string& one, const std::string& other) {
    return imported("real_ip_header X-Forwarded-For; real_ip_recursive on; server { " + one +
                    " location / { proxy_pass http://127.0.0.1:1; } } server { " + other +
                    " server_name b.example; location / { proxy_pass http://127.0.0.1:1; } }");
  };
  EXPECT_THAT(two("set_real_ip_from 10.0.0.0/8;", "set_real_ip_from 10.0.0.0/8;").toml,
              HasSubstr("trusted_proxies = [\"10.0.0.0/8\"]"));
  const auto apart = two("set_real_ip_from 10.0.0.0/8;", "");
  EXPECT_THAT(apart.toml, Not(HasSubstr("trusted_proxies")));
  EXPECT_THAT(apart.notes, Contains(HasSubstr("set_real_ip_from: locations differ")));
}

TEST(ImportAccess, LocationWithAllowAndDenyForwardsNoRequestIfTrustedProxiesAreNotTranslated) {
  const auto result = imported_location("allow 127.0.0.1; deny all;", "", kProxies);
  EXPECT_FALSE(forwards(result));
  EXPECT_THAT(result.notes, Contains(HasSubstr("location: allow and deny")));
  EXPECT_TRUE(forwards(imported_location("", "", kProxies)));
  EXPECT_TRUE(forwards(imported_location("allow all;", "", kProxies)));
  EXPECT_THAT(imported_location("deny all;", "", kProxies).notes, Not(Contains(HasSubstr("allow and deny"))));
}

TEST(ImportAccess, ServerWithOnlyAnUnsupportedListenDirectiveGetsNoListener) {
  for (const char* listen : {"listen 127.0.0.1:443 quic;", "listen foo:bar;"}) {
    const auto server =
        std::string("server { ") + listen + " location / { proxy_pass http://127.0.0.1:1; } }";
    EXPECT_EQ(imported(server).toml, "fault: no listener is left; weir import needs one") << listen;
    EXPECT_THAT(imported(server + "server { listen 81; }").toml, Not(HasSubstr("0.0.0.0:80\"")));
  }
  EXPECT_THAT(imported("server { }").toml, HasSubstr("0.0.0.0:80\""));
}

TEST(ImportAccess, Ipv4AndIpv6ListenersOfAPortAreMergedOnlyIfTheyHaveTheSameServers) {
  const auto result = imported(
      "server { listen 80; location / { proxy_pass http://127.0.0.1:1; } } "
      "server { listen [::]:80; location / { return 403; } }");
  EXPECT_THAT(result.toml, HasSubstr("address = \"0.0.0.0:80\""));
  EXPECT_THAT(result.toml, Not(HasSubstr("[::]")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("listen: [::]:80 is left out")));
  EXPECT_THAT(
      imported("server { listen 80; listen [::]:80; } server { server_name b.example; listen [::]:80; "
               "listen *:80; }")
          .toml,
      HasSubstr("address = \"[::]:80\""));
}

TEST(ImportAccess, MethodsThatLimitExceptDoesNotListAreRefusedWith403) {
  const auto result = imported_location("limit_except GET post { deny all; }");
  EXPECT_THAT(result.toml, HasSubstr("match = { methods = [\"GET\", \"HEAD\", \"POST\"] }\nupstream = "));
  EXPECT_THAT(result.toml, HasSubstr("respond = { status = 403 }"));
  EXPECT_THAT(result.notes, Not(Contains(HasSubstr("limit_except"))));
  EXPECT_THAT(imported_location("limit_except GET { allow 10.0.0.0/8; deny all; }").notes,
              Contains(HasSubstr("limit_except: no equal for its block; weir answers 403 to other methods")));
}

TEST(ImportAccess, LocationWithAnUntranslatableRegexThatMayDenyRequestsAnswers403) {
  const auto closed = imported(R"(server { location ~ "^/private [ab ]rea/" { deny all; }
                                  location ~ ^/(?!public) { auth_basic x; } })");
  EXPECT_THAT(closed.toml, HasSubstr("match = { path = \"~^/private%20\" }\nrespond = { status = 403 }"));
  EXPECT_THAT(closed.toml, HasSubstr("match = { path = \"~^/\" }\nrespond = { status = 403 }"));
  EXPECT_THAT(closed.notes, Contains(HasSubstr("weir answers 403 to all paths that begin with /private%20")));
  const auto open = imported(R"(server { location ~ "^/a[ b]" { proxy_pass http://127.0.0.1:1; } })");
  EXPECT_TRUE(forwards(open));
  EXPECT_THAT(open.notes, Contains(HasSubstr("other locations may take some of its requests")));
}

TEST(ImportAccess, ReportNotesNoMissingFilesForALocationThatDeniesEveryRequest) {
  for (const char* text : {"deny all;", "auth_basic x;"})
    EXPECT_THAT(
        imported(std::string("server { location /a/ { ") + text + " } location / { return 404; } }").notes,
        Not(Contains(HasSubstr("no equal for files"))));
}

TEST(ImportAccess, TextLikeAnEnvironmentVariableIsNotCopiedIntoTheConfiguration) {
  const auto result = imported("server { default_type \"${HOME}\"; location / { return 200 a; } }");
  EXPECT_THAT(result.toml, HasSubstr("content_type = \"text/plain\""));
  EXPECT_THAT(result.notes, Contains(HasSubstr("default_type: no equal for \"${\"")));
  EXPECT_THAT(imported("server { location ~ \"^/[${HOME}]\" { deny all; } }").toml, Not(HasSubstr("${")));
}

TEST(ImportAccess, ControlCharactersAreEscapedInCommentsAndNotes) {
  const auto result = imported("server { \x1b[1m; location / { return 200; } }", "a\n[admin]");
  EXPECT_THAT(result.toml, HasSubstr("# a\\x0A[admin]:1\n"));
  EXPECT_THAT(result.notes, Contains("a\\x0A[admin]:1: \\x1B[1m: no equal"));
}

TEST(ImportReport, ListsDirectivesThatHaveNoEquivalentInWeir) {
  const auto result =
      imported_location("proxy_pass_request_headers off; proxy_pass_request_body off; root /a;",
                        "merge_slashes off; ssl_verify_depth 2;");
  for (const char* name :
       {"proxy_pass_request_headers", "proxy_pass_request_body", "root", "merge_slashes", "ssl_verify_depth"})
    EXPECT_THAT(result.notes, Contains(HasSubstr(std::string(name) + ": no equal; "))) << name;
  EXPECT_THAT(imported_location("proxy_pass_request_headers on;", "merge_slashes on;").notes,
              Not(Contains(HasSubstr("no equal; weir "))));
}

TEST(ImportAccess, LocationWithLuaThatMayRefuseRequestsForwardsNoRequest) {
  for (const char* guard : {"rewrite_by_lua_block { ngx.exit(403) }", "rewrite_by_lua_file a.lua;",
                            "server_rewrite_by_lua_file a.lua;"})
    EXPECT_FALSE(forwards(imported_location(guard))) << guard;
  EXPECT_TRUE(forwards(imported_location("rewrite_by_lua_no_postpone on;")));
}

TEST(ImportAccess, LocationWithAnIfThatMayRefuseRequestsForwardsNoRequest) {
  for (const char* refusing :
       {"if ($ssl_client_verify != SUCCESS) { return 403; }",
        "if ($http_x_token != \"s\") { return 401 \"no\"; }",
        "if ($invalid_referer) { set $a 1; return 444; }", "if (-f /blocked/$remote_addr) { return 403; }",
        "if (!-f /open) { return 403; }"}) {
    const auto within = imported_location(refusing);
    EXPECT_FALSE(forwards(within)) << refusing;
    EXPECT_THAT(within.toml, HasSubstr("respond = { status = 403 }")) << refusing;
    EXPECT_THAT(within.notes, Contains(HasSubstr("if: no equal for its condition; weir answers 403 there")));
    EXPECT_FALSE(forwards(imported_location("", refusing))) << refusing;
  }
  for (const char* other : {"if ($a) { return 301 https://$host$request_uri; }", "if ($a) { set $b 1; }",
                            "if (-f $document_root/maintenance.html) { return 503; }"}) {
    EXPECT_TRUE(forwards(imported_location(other))) << other;
    EXPECT_THAT(imported_location(other).notes, Contains(HasSubstr("if: no equal; its block is left out")));
  }
}

TEST(ImportAccess, LocationWithDenyUnixForwardsNoRequestOnAUnixSocket) {
  const auto result = imported_location("deny unix:; allow 10.0.0.0/8; deny all;", "listen unix:/run/a;");
  EXPECT_FALSE(forwards(result));
  EXPECT_THAT(result.notes, Contains(HasSubstr("location: deny unix: has no equal")));
  EXPECT_TRUE(forwards(imported_location("deny unix:;", "listen 80;")));
  EXPECT_TRUE(forwards(imported_location("allow unix:; deny unix:;", "listen unix:/run/a;")));
  EXPECT_TRUE(forwards(imported_location("allow all;", "listen unix:/run/a;", "deny unix:;")));
}

TEST(ImportAccess, RefusingIfClosesWhatAReturnWouldAnswer) {
  const std::string refuses = R"(if ($http_x_token != "s") { return 403; } )";
  const auto closed = HasSubstr("respond = { status = 403 }");
  for (const std::string answer : {"return 200 \"secret\";", "location / { return 200 \"secret\"; }"}) {
    const auto toml = imported("server { listen 80; " + refuses + answer + " }").toml;
    EXPECT_THAT(toml, closed) << answer;
    EXPECT_THAT(toml, Not(HasSubstr("secret"))) << answer;
  }
  const auto inner = "server { listen 80; location / { " + refuses + "return 200 \"secret\"; } }";
  EXPECT_THAT(imported(inner).toml, AllOf(closed, Not(HasSubstr("secret"))));
  const auto redirect = "server { listen 80; " + refuses + "return 301 https://a.example$request_uri; }";
  EXPECT_THAT(imported(redirect).toml, HasSubstr("https://a.example"));
}

TEST(ImportAccess, ListenerGetsTheHighestMinimumTlsVersionOfItsServers) {
  const std::string files = " ssl_certificate a; ssl_certificate_key b; ";
  const auto two = [&](const std::string& one, const std::string& other) {
    Notes notes;
    const auto text = "server { listen 443 ssl; " + files + one +
                      " } server { listen 443 ssl; server_name b.example; " + files + other + " }";
    const auto toml = translate(*parse_nginx(text, "n.conf"), "/etc/nginx", notes).value();
    return std::pair(toml, notes.sorted().size());
  };
  const std::string newest = "ssl_protocols TLSv1.3;";
  const auto same = two(newest, newest);
  for (const auto& [toml, notes] : {two("", newest), two(newest, "")}) {
    EXPECT_THAT(toml, HasSubstr("min_version = \"1.3\""));
    EXPECT_EQ(notes, same.second + 1) << "the difference is reported";
  }
  EXPECT_THAT(two("", "").first, HasSubstr("min_version = \"1.2\""));
}

TEST(ImportAccess, ListenerThatIsOnlyForIpv6Answers403ToIpv4Clients) {
  const std::string location = "location / { proxy_pass http://127.0.0.1:1; } ";
  const auto alone = imported("server { listen [::]:80; " + location + "}");
  EXPECT_THAT(
      alone.toml,
      HasSubstr("match = { listener = \"[::]:80\", ip = \"0.0.0.0/0\" }\nrespond = { status = 403 }"));
  EXPECT_LT(alone.toml.find("0.0.0.0/0"), alone.toml.find("upstream = "));
  EXPECT_THAT(alone.notes, Contains(HasSubstr("listen: nginx takes IPv6 alone at [::]:80")));
  for (const char* listen :
       {"listen [::]:80 ipv6only=off;", "listen 80; listen [::]:80;", "listen [::1]:80;"})
    EXPECT_THAT(imported("server { " + std::string(listen) + location + "}").toml,
                Not(HasSubstr("0.0.0.0/0")))
        << listen;
}

TEST(ImportAccess, ReportSaysThatProxySslVerifyDepthHasNoEquivalent) {
  EXPECT_THAT(
      imported_location("proxy_ssl_verify_depth 1;").notes,
      Contains(HasSubstr("proxy_ssl_verify_depth: no equal; weir accepts a chain of any usual length")));
}

}  // namespace
}  // namespace weir::cli::nginx
