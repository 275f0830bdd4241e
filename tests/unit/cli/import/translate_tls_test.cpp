#include "unit/cli/import/translation.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli::nginx {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Translates `text`, which has servers that listen with TLS, and one more server on port 81. The certificate
// files need not exist.
Translated of_tls(const std::string& text) {
  return translation(*parse_nginx(
      "ssl_certificate a.crt; ssl_certificate_key a.key;\n" + text + " server { listen 81; }", "n.conf"));
}

TEST(Translate, SslVerifyClientBecomesClientCaAndClientAuth) {
  const auto toml =
      of_tls("server { listen 443 ssl; ssl_verify_client on; ssl_trusted_certificate t.crt; ssl_crl t.crl; }")
          .toml;
  EXPECT_THAT(toml, HasSubstr("client_ca = \"/etc/nginx/t.crt\"\nclient_crl = \"/etc/nginx/t.crl\"\n"
                              "client_auth = \"require\"\n"));
  const auto both = of_tls(
      "server { listen 443 ssl; ssl_verify_client optional; ssl_trusted_certificate t.crt; "
      "ssl_client_certificate c.crt; }");
  EXPECT_THAT(both.toml, HasSubstr("client_ca = \"/etc/nginx/c.crt\"\nclient_auth = \"optional\"\n"));
  EXPECT_THAT(both.notes, Contains(HasSubstr("listen: nginx also trusts clients of /etc/nginx/t.crt")));
  EXPECT_THAT(of_tls("server { listen 443 ssl; ssl_trusted_certificate t.crt; ssl_crl t.crl; }").toml,
              Not(HasSubstr("client_")));
}

TEST(Translate, ListenerWithSslVerifyClientButNoCaIsLeftOut) {
  const auto result = of_tls("server { listen 443 ssl; ssl_verify_client on; }");
  EXPECT_THAT(result.toml, Not(HasSubstr("443")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("listen: 0.0.0.0:443 has ssl_verify_client and no "
                                               "ssl_client_certificate; the listener is left out")));
}

TEST(Translate, ListenerTakesTheStrictestClientAuthOfItsServers) {
  const auto result = of_tls(
      "ssl_client_certificate c.crt; server { listen 443 ssl; ssl_verify_client optional; } "
      "server { listen 443 ssl; server_name a; ssl_verify_client on; }"
      "server { listen 443 ssl; server_name b; }");
  EXPECT_THAT(result.toml, HasSubstr("client_auth = \"require\"\n"));
  EXPECT_THAT(result.notes,
              Contains(HasSubstr("listen: the servers of 0.0.0.0:443 differ in "
                                 "ssl_verify_client; weir has client_auth = \"require\" for all")));
}

TEST(Translate, ListenerIsLeftOutIfItsServersHaveDifferentClientCas) {
  const auto result = of_tls(
      "ssl_verify_client on; server { listen 443 ssl; ssl_client_certificate c.crt; } "
      "server { listen 443 ssl; server_name a; ssl_client_certificate d.crt; }");
  EXPECT_THAT(result.toml, Not(HasSubstr("443")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("the servers of 0.0.0.0:443 have different authorities")));
}

}  // namespace
}  // namespace weir::cli::nginx
