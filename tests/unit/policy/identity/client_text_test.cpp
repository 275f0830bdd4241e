#include "weir/policy/client_text.hpp"

#include <array>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

KeyPattern pattern(const std::vector<const char*>& parts) {
  KeyPattern key;
  for (const auto* part : parts) key.push_back(parse_key_part(part).value());
  return key;
}

std::string text_of(const std::vector<const char*>& parts, const Request& request, std::size_t room = 100) {
  std::vector<char> space(room);
  return std::string(write_client(space, pattern(parts), request));
}

TEST(ClientText, ShowsKeyValuesThatAreNotSecret) {
  http::RequestHead head;
  head.method = "GET";
  Request request{.head = &head, .path = "/a", .host = "example.com", .route = "api", .client = {}};
  request.client.network = *base::IpAddress::parse("203.0.113.7");
  EXPECT_EQ(text_of({"ip"}, request), "203.0.113.7");
  EXPECT_EQ(text_of({}, request), "everybody");
  EXPECT_EQ(text_of({"api_key|ip"}, request), "203.0.113.7");
  // the address replaces the missing user, because on_missing = "ip"
  EXPECT_EQ(text_of({"user"}, request), "203.0.113.7");
  EXPECT_EQ(text_of({"ip", "path", "method"}, request), "203.0.113.7 path:/a method:GET");
  request.client.api_key = "secret";
  EXPECT_EQ(text_of({"api_key|ip"}, request), "api_key");
  request.client.user = "ali\x1b\xc3\xa9";
  EXPECT_EQ(text_of({"api_key|ip", "route"}, request), "api_key of ali??? route:api");
  EXPECT_EQ(text_of({"header:X-Tenant", "user"}, request), "header:x-tenant user:ali???");
  EXPECT_EQ(text_of({"user"}, request, 7), "user:al");
  EXPECT_TRUE(is_readable(pattern({"ip", "user"})));
  EXPECT_FALSE(is_readable(pattern({"ip", "api_key|ip"})));
}

TEST(ClientText, WritesAddressesInCanonicalForm) {
  std::mt19937_64 chance(7);
  const auto expect_same = [](const base::IpAddress& ip) {
    Request request;
    request.client.network = ip;
    EXPECT_EQ(text_of({"ip"}, request), ip.to_string());
  };
  for (const char* text :
       {"::", "::1", "1::", "2001:db8::", "2001:db8:0:1::", "1:0:0:2:0:0:0:3", "1:0:2:0:3:0:4:0", "0.0.0.0",
        "255.255.255.255", "1:2:3:4:5:6:7:8", "0:1:2:3:4:5:6:7", "fe80::1:0:0:1", "1:2:3:4:5:6:7:0"})
    expect_same(*base::IpAddress::parse(text));
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int group = 0; group < 7; ++group) {
      std::array<char, 8> digits{};
      std::snprintf(digits.data(), digits.size(), "%x",
                    static_cast<unsigned>(chance() % 3 == 0 ? chance() >> (48 + chance() % 16) : 0));
      text += ":" + std::string(digits.data());
    }
    expect_same(*base::IpAddress::parse("2001" + text));
  }
}

}  // namespace
}  // namespace weir::policy
