#include "weir/http/field_names.hpp"

#include "http/head_lines.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

TEST(FieldNames, FindsNamesInAnyCaseAndWithAnySeparator) {
  const FieldNames names{"X-Real-IP"};
  for (const char* same : {"X-Real-IP", "x-real-ip", "X_Real_IP", "X.Real.IP", "x-REAL_ip", "x~real|ip"})
    EXPECT_TRUE(names.contains(same)) << same;
  for (const char* other : {"X-Real-I", "X-Real-IPs", "XX-Real-IP", "XRealIP", "Real-IP", "_-Real-IP", "X"})
    EXPECT_FALSE(names.contains(other)) << other;
}

TEST(FieldNames, FindsEveryNameThatBeginsWithAPrefix) {
  const FieldNames names{"X-SSL-*"};
  for (const char* below : {"X-SSL-", "X-SSL-Cert", "x_ssl_client_s_dn"})
    EXPECT_TRUE(names.contains(below)) << below;
  EXPECT_TRUE(names.contains("X-SSL-" + std::string(200, 'a')));
  for (const char* other : {"X-SSL", "X-SSLCert", "X", "Y-SSL-Cert"})
    EXPECT_FALSE(names.contains(other)) << other;
}

TEST(FieldNames, PatternWithAShortPrefixMatchesOnlyNamesThatBeginWithIt) {
  const FieldNames names{"X-*"};
  for (const char* below : {"X-", "X-A", "x_real_ip"}) EXPECT_TRUE(names.contains(below)) << below;
  for (const char* other : {"X", "XA-B", "A-X-"}) EXPECT_FALSE(names.contains(other)) << other;
}

TEST(FieldNames, FindsEachOfManyNames) {
  FieldNames names;
  const auto name_of = [](int i) { return "X-" + std::to_string(i * 7919) + "-Name"; };
  for (int i = 0; i < 500; ++i) names.add(name_of(i));
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(names.contains(name_of(i))) << name_of(i);
  for (int i = 500; i < 1000; ++i) EXPECT_FALSE(names.contains(name_of(i))) << name_of(i);
}

TEST(FieldNames, FindsWellKnownFieldsByNameOrPrefix) {
  const FieldNames names{"X-Forwarded-*", "Via", "Rate*"};
  for (std::size_t i = 1; i < kKnownFieldNames.size(); ++i) {
    const auto name = kKnownFieldNames[i];
    const bool listed = name.starts_with("x-forwarded-") || name == "via" || name.starts_with("rate");
    EXPECT_EQ(static_cast<std::size_t>(field_id(name)), i) << name;
    EXPECT_EQ(names.contains(Field{name, "1", field_id(name)}), listed) << name;
    EXPECT_EQ(names.contains(name), listed) << name;
  }
  EXPECT_TRUE(names.contains(Field{"X_Forwarded_For", "1", field_id("X_Forwarded_For")}));
}

TEST(FieldNames, LongNamesMatchOnlyIfAllTheirCharactersAreEqual) {
  const std::string longest(100, 'n');
  FieldNames names;
  names.add(longest);
  EXPECT_TRUE(names.contains(longest));
  EXPECT_FALSE(names.contains(longest + "n"));
  EXPECT_FALSE(names.contains(longest.substr(1)));
}

TEST(FieldNames, IsEmptyAfterClear) {
  FieldNames names{"X-Real-IP", "X-SSL-*"};
  names.clear();
  EXPECT_TRUE(names.empty());
  EXPECT_FALSE(names.contains("X-Real-IP"));
  EXPECT_FALSE(names.contains("X-SSL-Cert"));
}

TEST(UsualTrustedFields, ContainFieldsThatIdentifyClientsToServers) {
  const auto names = usual_trusted_fields();
  for (const char* name : {"X-Real-IP",
                           "X-Forwarded-For",
                           "X-Forwarded-User",
                           "X-Forwarded-Client-Cert",
                           "X-Forwarded-Port",
                           "True-Client-IP",
                           "X-Original-URL",
                           "X-Rewrite-URL",
                           "X-SSL-Client-Verify",
                           "Proxy",
                           "Client-IP",
                           "CF-Connecting-IP",
                           "X-Client-IP",
                           "Client-Cert",
                           "SSL-Client-Cert",
                           "Forwarded",
                           "Remote-User",
                           "X-Remote-User",
                           "X-ARR-ClientCert",
                           "X-Client-Cert",
                           "X-Client-Cert-Chain",
                           "X-Amzn-Oidc-Identity",
                           "X-Amzn-Oidc-Data",
                           "X-Amzn-Oidc-Accesstoken",
                           "WL-Proxy-Client-IP",
                           "Proxy-Client-IP",
                           "X-Envoy-External-Address",
                           "X-Azure-ClientIP",
                           "Fly-Client-IP",
                           "X-Remote-IP",
                           "X-Remote-Addr",
                           "X-Originating-IP",
                           "X-ProxyUser-Ip",
                           "X-Host",
                           "X-Scheme",
                           "Front-End-Https",
                           "X-Auth-Request-User",
                           "X-MS-CLIENT-PRINCIPAL",
                           "X-MS-CLIENT-PRINCIPAL-NAME",
                           "Remote_User",
                           "X_REMOTE_USER",
                           "X-Goog-Authenticated-User-Email",
                           "Tailscale-User-Login"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(UsualTrustedFields, DoNotContainFieldsThatClientsNormallySend) {
  const auto names = usual_trusted_fields();
  for (const char* name : {"Accept",
                           "Accept-Encoding",
                           "Authorization",
                           "Cache-Control",
                           "Connection",
                           "Content-Type",
                           "Cookie",
                           "Host",
                           "If-None-Match",
                           "Origin",
                           "Proxy-Authorization",
                           "Referer",
                           "Sec-Fetch-Mode",
                           "Traceparent",
                           "User-Agent",
                           "X-API-Key",
                           "X-Requested-With",
                           "X-Request-ID",
                           "X-Real-Estate",
                           "X-Forward",
                           "X-CSRF-Token",
                           "X-SSO-Token",
                           "X-Original-Filename",
                           "X-HTTP-Method-Override",
                           "X-Amzn-Trace-Id",
                           "X-Auth-Token",
                           "X-Client-Version",
                           "Remote-Usage"})
    EXPECT_FALSE(names.contains(name)) << name;
}

}  // namespace
}  // namespace weir::http
