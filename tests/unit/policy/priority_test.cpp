#include "weir/policy/priority.hpp"

#include "unit/policy/sample.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

TEST(Priority, ComesFromTheTierThenTheRouteThenTheDefault) {
  const auto head = head_with({});
  auto request = request_of(head);
  Route route;
  route.priority = 8;
  const TierPriorities tiers{{"pro", 1}};
  EXPECT_EQ(priority_of(request, nullptr, tiers), kDefaultPriority);
  EXPECT_EQ(priority_of(request, &route, tiers), 8);
  request.client.tier = "free";
  EXPECT_EQ(priority_of(request, &route, tiers), 8);
  request.client.tier = "pro";
  EXPECT_EQ(priority_of(request, &route, tiers), 1);
  EXPECT_EQ(priority_of(request, nullptr, tiers), 1);
}

TEST(NameClient, UsesTheFirstAttributeThatIsPresent) {
  const auto head = head_with({});
  auto request = request_of(head, "203.0.113.7");
  const auto by_ip = name_client(request, kKey);
  EXPECT_EQ(by_ip, name_client(request_of(head, "203.0.113.7"), kKey));
  EXPECT_NE(by_ip, name_client(request_of(head, "203.0.113.8"), kKey));
  request.client.user = "ada";
  const auto by_user = name_client(request, kKey);
  EXPECT_NE(by_user, by_ip);
  request.client.network = ip("203.0.113.9");
  EXPECT_EQ(name_client(request, kKey), by_user);
  request.client.api_key = "ada";
  request.client.key_vouched = true;
  EXPECT_NE(name_client(request, kKey), by_user) << "an API key equal to a user name is another client";
}

// In earlier versions, a client could invent API keys. The queue then treated the client as many clients,
// which displaced other clients.
TEST(NameClient, IgnoresApiKeysThatAreNotInTheKeysFile) {
  const auto head = head_with({{"X-API-Key", "invented"}});
  const auto of = [&](const ClientSettings& settings) {
    auto request = request_of(head);
    request.client = identify(settings, ip("203.0.113.7"), head);
    EXPECT_EQ(request.client.api_key, "invented");
    return name_client(request, kKey);
  };
  const auto by_ip = name_client(request_of(head, "203.0.113.7"), kKey);
  ClientSettings settings;
  EXPECT_EQ(of(settings), by_ip);
  settings.keys.emplace();
  settings.unknown_keys = UnknownKeys::Accept;
  EXPECT_EQ(of(settings), by_ip);
  ASSERT_TRUE(settings.keys->add(ApiKeys::digest("invented"), {}));
  EXPECT_NE(of(settings), by_ip);
}

}  // namespace
}  // namespace weir::policy
