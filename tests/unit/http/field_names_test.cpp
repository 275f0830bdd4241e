#include "weir/http/field_names.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

TEST(FieldNames, FindsANameWhateverItsCaseAndSeparators) {
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

TEST(FieldNames, TellsLongNamesApart) {
  const std::string longest(100, 'n');
  FieldNames names;
  names.add(longest);
  EXPECT_TRUE(names.contains(longest));
  EXPECT_FALSE(names.contains(longest + "n"));
  EXPECT_FALSE(names.contains(longest.substr(1)));
}

TEST(FieldNames, HasNothingWhenEmptied) {
  FieldNames names{"X-Real-IP", "X-SSL-*"};
  names.clear();
  EXPECT_TRUE(names.empty());
  EXPECT_FALSE(names.contains("X-Real-IP"));
  EXPECT_FALSE(names.contains("X-SSL-Cert"));
}

TEST(UsualTrustedFields, AreThoseByWhichServersLearnWhoTheClientIs) {
  const auto names = usual_trusted_fields();
  for (const char* name :
       {"X-Real-IP", "X-Forwarded-For", "X-Forwarded-User", "X-Forwarded-Client-Cert", "X-Forwarded-Port",
        "True-Client-IP", "X-Original-URL", "X-Rewrite-URL", "X-SSL-Client-Verify", "Proxy", "Client-IP",
        "CF-Connecting-IP", "X-Client-IP", "Client-Cert", "SSL-Client-Cert", "Forwarded"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(UsualTrustedFields, LeaveOutWhatClientsSendOfThemselves) {
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
                           "X-Original-Filename"})
    EXPECT_FALSE(names.contains(name)) << name;
}

}  // namespace
}  // namespace weir::http
