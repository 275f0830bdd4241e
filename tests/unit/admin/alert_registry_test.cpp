#include "admin/alerts/alert_registry.hpp"

#include "unit/admin/login_alerts.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

namespace json = boost::json;
using observe::RuleOutcome;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr base::TimePoint at(std::int64_t seconds) {
  return base::TimePoint{std::chrono::seconds(1'000'000 + seconds)};
}

class AlertRegistryTest : public LoginAlerts {
 protected:
  static AlertSettings alert(const char* name, std::uint64_t above = 3, const char* target = "/hook") {
    auto settings = alert_on_login(name, {.count = above, .period = std::chrono::seconds(1)}, 100);
    settings.webhook.target = target;
    return settings;
  }
  void refuse(int count, int second) {
    counters_.decisions(0, RuleOutcome::Refused).add(static_cast<std::uint64_t>(count));
    registry_->update(sources_, at(second));
  }
  // Makes all alerts on the rule "login" fire in second 1.
  void fire() {
    refuse(0, 0);
    refuse(6, 1);
  }
  // Returns the messages that weir posts in this second, such as "ended login to /hook". If `taken` is true,
  // the receiver accepts the messages; otherwise weir posts them again later.
  std::vector<std::string> posted(int second, bool taken = true) {
    std::vector<std::string> told;
    for (const auto& alert : registry_->alerts_to_post()) {
      const auto* due = alert->delivery.begin(at(second));
      if (due == nullptr) continue;
      const auto said = json::parse(*due).as_object();
      told.push_back(std::string(said.at("state").as_string()) + " " +
                     std::string(said.at("alert").as_string()) + " to " + alert->settings.webhook.target);
      if (taken)
        (void)alert->delivery.sent();
      else
        (void)alert->delivery.failed(false, at(second), 0);
    }
    return told;
  }

  std::vector<std::string> log_;
  AlertRegistry book_{"1.2.3", [this](const std::string& line) { log_.push_back(line); }};
  AlertRegistry other_{"1.2.4", [](const std::string&) {}};  // the registry of the new process
  AlertRegistry* registry_ = &book_;
};

TEST_F(AlertRegistryTest, UnchangedAlertKeepsItsStateAfterAReload) {
  book_.change({alert("a"), alert("b")}, at(0));
  fire();
  EXPECT_THAT(posted(1), ElementsAre("firing a to /hook", "firing b to /hook"));
  book_.change({alert("b"), alert("a")}, at(2));
  refuse(6, 2);
  EXPECT_THAT(posted(2), IsEmpty());
  EXPECT_TRUE(book_.figures()[0].firing);
  EXPECT_EQ(book_.figures()[0].fired, 1);
}

TEST_F(AlertRegistryTest, AlertThatIsRemovedWhileItFiresPostsItsEnd) {
  book_.change({alert("a")}, at(0));
  fire();
  EXPECT_THAT(posted(1), ElementsAre("firing a to /hook"));
  book_.change({}, at(2));
  EXPECT_THAT(book_.figures(), IsEmpty());
  EXPECT_THAT(posted(2, false), ElementsAre("ended a to /hook"));
  EXPECT_THAT(posted(60), ElementsAre("ended a to /hook"));
  EXPECT_THAT(book_.alerts_to_post(), IsEmpty());
  EXPECT_EQ(log_.back(), "alert a has ended: 6 within the last period, the threshold is 3/s");
}

TEST_F(AlertRegistryTest, EndMessageOfARemovedAlertIsRetriedOnlyTheConfiguredNumberOfTimes) {
  book_.change({alert("a")}, at(0));
  fire();
  book_.change({}, at(2));
  unsigned attempts = 0;
  for (int second = 2; second < 10; ++second) attempts += static_cast<unsigned>(posted(second, false).size());
  EXPECT_EQ(attempts, alert("a").attempts);
  EXPECT_THAT(book_.alerts_to_post(), IsEmpty());
}

TEST_F(AlertRegistryTest, RenamedAlertEndsAndFiresAgainUnderTheNewName) {
  book_.change({alert("a")}, at(0));
  fire();
  (void)posted(1);
  book_.change({alert("b")}, at(2));
  EXPECT_THAT(posted(2), ElementsAre("ended a to /hook"));
  refuse(6, 3);
  // The first update of "b" only stores the total, so the 6 refusals before it do not count.
  EXPECT_THAT(posted(3), IsEmpty());
  refuse(6, 4);
  EXPECT_THAT(posted(4), ElementsAre("firing b to /hook"));
}

TEST_F(AlertRegistryTest, EndMessageGoesToTheWebhookThatGotTheFiringMessage) {
  book_.change({alert("a")}, at(0));
  fire();
  (void)posted(1);
  book_.change({alert("a", 3, "/other")}, at(2));
  EXPECT_THAT(posted(2), ElementsAre("ended a to /hook"));
  EXPECT_EQ(book_.figures()[0].fired, 1);  // weir counts alerts by name, and the name is unchanged
  EXPECT_EQ(book_.figures()[0].ended, 1);
}

TEST_F(AlertRegistryTest, NewerMessageOfAnAlertReplacesItsUndeliveredMessage) {
  book_.change({alert("a")}, at(0));
  fire();
  (void)posted(1);
  book_.change({alert("a", 1)}, at(2));
  EXPECT_THAT(posted(2, false), ElementsAre("ended a to /hook"));
  refuse(6, 3);
  refuse(6, 4);
  EXPECT_THAT(posted(4), ElementsAre("firing a to /hook"));
  EXPECT_EQ(book_.figures()[0].superseded, 1);
  EXPECT_EQ(book_.figures()[0].above, "1/s");
  EXPECT_EQ(book_.alerts_to_post().size(), 1);
}

TEST_F(AlertRegistryTest, EndOfAnAlertIsPostedEvenIfTheAlertIsRemovedBeforeThePost) {
  book_.change({alert("a")}, at(0));
  fire();
  (void)posted(1);
  for (int second = 2; second < 5; ++second) refuse(0, second);
  EXPECT_FALSE(book_.figures()[0].firing);
  book_.change({}, at(5));
  EXPECT_THAT(posted(5), ElementsAre("ended a to /hook"));
  book_.change({alert("a")}, at(6));
  book_.change({}, at(7));
  // The removed alert was not firing, so it has no message.
  EXPECT_THAT(book_.alerts_to_post(), IsEmpty());
}

TEST_F(AlertRegistryTest, AlertThatANewProcessContinuesIsPostedOnlyOnce) {
  book_.change({alert("a"), alert("b")}, at(0));
  fire();
  EXPECT_THAT(posted(1), ElementsAre("firing a to /hook", "firing b to /hook"));
  other_.change({alert("b", 5), alert("a", 3, "/elsewhere")}, at(2));
  const auto standings = book_.retire(other_.alert_ids(), at(2));
  ASSERT_EQ(standings.size(), 1U);
  EXPECT_EQ(standings[0].since, at(1));
  EXPECT_EQ(standings[0].seen, 6U);
  EXPECT_THAT(book_.figures(), IsEmpty());
  // The new process continues only "b". Its alert "a" has another webhook.
  EXPECT_THAT(posted(2), ElementsAre("ended a to /hook"));
  registry_ = &other_;
  other_.go_on(standings, at(2));
  EXPECT_TRUE(other_.figures()[0].firing);
  EXPECT_FALSE(other_.figures()[1].firing);
  for (int second = 2; second < 4; ++second) refuse(0, second);
  EXPECT_THAT(posted(3), ElementsAre("ended b to /hook"));
}

TEST_F(AlertRegistryTest, NewProcessPostsUndeliveredMessagesOfTheOldProcess) {
  for (auto* book : {&book_, &other_}) book->change({alert("a")}, at(0));
  fire();
  EXPECT_THAT(posted(1, false), ElementsAre("firing a to /hook"));
  other_.go_on(book_.retire(other_.alert_ids(), at(2)), at(2));
  EXPECT_THAT(book_.alerts_to_post(), IsEmpty());
  registry_ = &other_;
  EXPECT_THAT(posted(2), ElementsAre("firing a to /hook"));
  for (int second = 3; second < 7; ++second) refuse(0, second);
  book_.change({alert("a")}, at(8));
  book_.go_on(other_.retire(book_.alert_ids(), at(8)), at(8));
  registry_ = &book_;
  EXPECT_FALSE(book_.figures()[0].firing);
  EXPECT_THAT(posted(8), ElementsAre("ended a to /hook"));
}

TEST_F(AlertRegistryTest, ReloadWithAnUnreadableCaFileLeavesTheAlertsUnchanged) {
  book_.change({alert("a")}, at(0));
  fire();
  auto faulty = alert("a", 1);
  faulty.webhook.tls = true;
  faulty.webhook.ca = "/nonexistent.crt";
  EXPECT_THROW(book_.change({faulty}, at(2)), std::runtime_error);
  EXPECT_THAT(posted(2), ElementsAre("firing a to /hook"));
  EXPECT_EQ(book_.figures()[0].above, "3/s");
}

}  // namespace
}  // namespace weir::admin
