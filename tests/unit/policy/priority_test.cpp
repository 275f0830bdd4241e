#include "weir/policy/priority.hpp"

#include "unit/policy/sample.hpp"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

constexpr base::SipKey kKey{1, 2};

TEST(Priority, OfTheTierElseOfTheRouteElseInTheMiddle) {
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

TEST(NameClient, ByTheFirstThatIsPresent) {
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
  EXPECT_NE(name_client(request, kKey), by_user) << "an API key that reads like a user is not that user";
}

}  // namespace
}  // namespace weir::policy
