#include "weir/observe/client_surges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::observe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// Alerts on clients that are refused more than three times in a second.
class ClientSurgesTest : public ::testing::Test {
 protected:
  static constexpr base::TimePoint at(std::int64_t seconds) {
    return base::TimePoint{std::chrono::seconds(1'000'000 + seconds)};
  }
  void refuse(std::uint64_t client, std::uint64_t times) {
    surges_.add({client, 1}, "client " + std::to_string(client), times);
  }
  // Advances the time by a second and looks for changes. Returns the changes, such as "client 1 began at 6".
  std::vector<std::string> update(std::size_t places = 10) {
    std::vector<std::string> told;
    for (const auto& [client, change] : surges_.update(at(++now_), places))
      told.push_back(client.name.text +
                     (change == Surge::Change::Began       ? " began at "
                      : change == Surge::Change::Continues ? " goes on at "
                                                           : " ended at ") +
                     std::to_string(client.surge.seen()));
    return told;
  }
  // Calls update() once for each second up to `second`. Expects no changes in the earlier seconds. Returns
  // the changes at `second`.
  std::vector<std::string> look_until(std::int64_t second) {
    while (now_ + 1 < second) EXPECT_THAT(update(), IsEmpty()) << now_;
    return update();
  }

  std::int64_t now_ = 0;
  ClientSurges surges_{{.above = {.count = 3, .period = std::chrono::seconds(1)}}};
};

TEST_F(ClientSurgesTest, OnlyTheClientThatExceedsTheRateIsReported) {
  refuse(1, 3);
  refuse(2, 4);
  EXPECT_THAT(update(), ElementsAre("client 2 began at 4"));
  refuse(2, 4);
  EXPECT_THAT(update(), IsEmpty()) << "a surge that lasts is reported once";
  EXPECT_EQ(surges_.clients().size(), 1U) << "client 1 is no longer refused";
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_THAT(update(), ElementsAre("client 2 ended at 0"));
  EXPECT_THAT(surges_.clients(), IsEmpty());
}

TEST_F(ClientSurgesTest, RefusalsCountedBySeveralWorkersAreAddedUp) {
  refuse(1, 2);
  refuse(1, 2);
  EXPECT_THAT(update(), ElementsAre("client 1 began at 4"));
}

TEST_F(ClientSurgesTest, SecondSurgeOfAClientIsReported) {
  refuse(1, 4);
  EXPECT_THAT(update(), ElementsAre("client 1 began at 4"));
  EXPECT_THAT(look_until(3), ElementsAre("client 1 ended at 0"));
  refuse(1, 9);
  EXPECT_THAT(update(), ElementsAre("client 1 began at 9"));
}

TEST_F(ClientSurgesTest, ClientThatDoesNotFitIntoAReportIsReportedLater) {
  for (std::uint64_t client = 1; client <= 3; ++client) refuse(client, 10 * client);
  EXPECT_THAT(update(2), ElementsAre("client 1 began at 10", "client 2 began at 20"));
  EXPECT_EQ(surges_.take_dropped().unreported, 1U);
  refuse(3, 30);
  EXPECT_THAT(update(0), IsEmpty());
  refuse(3, 30);
  EXPECT_THAT(update(2), ElementsAre("client 1 ended at 0", "client 2 ended at 0", "client 3 began at 30"));
  EXPECT_EQ(surges_.take_dropped().unreported, 0U) << "the client was counted once";
}

TEST_F(ClientSurgesTest, NoEndIsReportedForAClientThatWasNotReported) {
  refuse(1, 10);
  EXPECT_THAT(update(0), IsEmpty());
  EXPECT_THAT(update(0), IsEmpty());
  EXPECT_THAT(update(10), IsEmpty());
  EXPECT_THAT(surges_.clients(), IsEmpty());
}

TEST_F(ClientSurgesTest, SurgeThatLastsIsReportedAgain) {
  surges_ = ClientSurges(
      {.above = {.count = 3, .period = std::chrono::seconds(1)}, .repeat = std::chrono::seconds(2)});
  refuse(1, 9);
  EXPECT_THAT(update(), ElementsAre("client 1 began at 9"));
  refuse(1, 9);
  EXPECT_THAT(update(), IsEmpty());
  refuse(1, 9);
  EXPECT_THAT(update(), ElementsAre("client 1 goes on at 9"));
}

TEST_F(ClientSurgesTest, NewClientReplacesTheClientWithTheFewestRefusals) {
  surges_ = ClientSurges({.above = {.count = 100, .period = std::chrono::minutes(1)}});
  for (std::uint64_t client = 1; client <= ClientSurges::kWatched; ++client)
    refuse(client, client == 7 ? 1 : 2);
  EXPECT_THAT(update(), IsEmpty());
  refuse(1'000, 1);
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_EQ(surges_.clients().size(), ClientSurges::kWatched);
  EXPECT_EQ(surges_.take_dropped().replaced, 1U);
  for (const auto& client : surges_.clients()) EXPECT_NE(client.name.text, "client 7");
  const auto& newcomer = surges_.clients().back();
  EXPECT_EQ(newcomer.name.text, "client 1000");
  EXPECT_EQ(newcomer.surge.seen(), 1U) << "only its own refusals";
}

TEST_F(ClientSurgesTest, NewClientInheritsTheCountOfTheClientThatItReplaces) {
  surges_ = ClientSurges({.above = {.count = 100, .period = std::chrono::minutes(1)}});
  for (std::uint64_t client = 1; client <= ClientSurges::kWatched; ++client)
    refuse(client, client == 7 ? 3 : 4);
  // Client 1000 replaces client 7. It inherits the count 3, so that its own refusal makes it 4.
  refuse(1'000, 1);
  // Now all clients have the count 4, so client 1001 replaces the first of them, client 1.
  refuse(1'001, 1);
  std::vector<std::string> watched;
  for (const auto& client : surges_.clients()) watched.push_back(client.name.text);
  EXPECT_THAT(watched, Contains("client 1000"));
  EXPECT_THAT(watched, Contains("client 1001"));
  EXPECT_THAT(watched, Not(Contains("client 1")));
}

// A flood of new clients must not hide the client that the rule refuses most.
TEST_F(ClientSurgesTest, FrequentlyRefusedClientIsReportedDuringAFloodOfNewClients) {
  surges_ = ClientSurges({.above = {.count = 100, .period = std::chrono::minutes(1)}});
  std::uint64_t newcomer = 1'000;
  std::vector<std::string> told;
  for (int second = 0; second < 30 && told.empty(); ++second) {
    for (int i = 0; i < 300; ++i) refuse(++newcomer, 1);
    refuse(1, 20);
    for (int i = 0; i < 300; ++i) refuse(++newcomer, 1);
    told = update();
  }
  EXPECT_THAT(told, ElementsAre("client 1 began at 120"));
  EXPECT_LE(surges_.clients().size(), ClientSurges::kWatched);
}

TEST_F(ClientSurgesTest, NewClientDoesNotReplaceAClientWhoseAlertIsFiring) {
  for (std::uint64_t client = 1; client <= ClientSurges::kWatched; ++client) refuse(client, 4);
  EXPECT_EQ(update(1'000).size(), ClientSurges::kWatched);
  refuse(1'000, 50);
  EXPECT_THAT(update(1'000), IsEmpty());
  EXPECT_EQ(surges_.take_dropped().replaced, 1U);
}

TEST_F(ClientSurgesTest, SurgeThatThePreviousProcessReportedContinues) {
  surges_.go_on({{5, 1}, "client 5"}, at(-60), 131, at(0));
  refuse(5, 2);
  EXPECT_THAT(update(), IsEmpty());
  ASSERT_EQ(surges_.clients().size(), 1U);
  EXPECT_TRUE(surges_.clients()[0].reported);
  EXPECT_EQ(surges_.clients()[0].surge.since(), at(-60));
  EXPECT_THAT(update(), ElementsAre("client 5 ended at 0"));
}

}  // namespace
}  // namespace weir::observe
