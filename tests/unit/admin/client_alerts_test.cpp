// Tests alerts that watch each client of a rule separately.
#include "admin/alerts/alert_registry.hpp"
#include "unit/admin/login_alerts.hpp"

#include "weir/base/hex.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::admin {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ClientAlertsTest : public LoginAlerts {
 protected:
  static constexpr base::TimePoint at(std::int64_t seconds) {
    return base::TimePoint{std::chrono::seconds(1'000'000 + seconds)};
  }
  static AlertSettings alert(const char* name, std::uint64_t above = 3, std::size_t max_clients = 10) {
    auto settings = alert_on_login(name, {.count = above, .period = std::chrono::seconds(1)}, 100);
    settings.on = AlertOn::ClientRefusals;
    settings.max_clients = max_clients;
    settings.webhook.target = "/hook";
    return settings;
  }
  // Refuses `times` requests with an API key whose owner is `owner`.
  void refuse(const char* owner, int times) {
    policy::Request request;
    request.client.api_key = "s3cret";
    request.client.user = owner;
    const auto key = base::siphash128({}, owner);
    for (int i = 0; i < times; ++i) counters_.refused_clients->add(rule_, key, request);
  }
  void update(int second) { registry_->update(sources_, at(second)); }
  // Returns the messages that weir posts in this second, such as "firing logins: ada 4". If `taken` is false,
  // weir posts them again later.
  std::vector<std::string> posted(int second, bool taken = true) {
    std::vector<std::string> lines;
    for (const auto& alert : registry_->alerts_to_post()) {
      const auto* due = alert->delivery.begin(at(second));
      if (due == nullptr) continue;
      last_ = *due;
      const auto message = json::parse(*due).as_object();
      const std::string client(message.at("client").as_string());
      lines.push_back(std::string(message.at("state").as_string()) + " " +
                      std::string(message.at("alert").as_string()) + ": " +
                      client.substr(client.rfind(' ') + 1) + " " +
                      std::to_string(json::value_to<std::uint64_t>(message.at("refusals"))));
      if (taken)
        (void)alert->delivery.sent();
      else
        (void)alert->delivery.failed(false, at(second), 0);
    }
    return lines;
  }

  policy::Rule rule_{.name = "login",
                     .index = 0,
                     .key = {{{policy::Attribute::ApiKey, {}}}},
                     .limiter = *limit::Concurrency::make(1)};
  std::string last_;
  std::vector<std::string> log_;
  AlertRegistry book_{"1.2.3", [this](const std::string& line) { log_.push_back(line); }};
  AlertRegistry other_{"1.2.4", [](const std::string&) {}};  // the registry of the new process
  AlertRegistry* registry_ = &book_;
};

TEST_F(ClientAlertsTest, MessageNamesTheClientThatIsRefusedTooOften) {
  book_.change({alert("logins")}, at(0));
  update(0);
  refuse("ada", 4);
  refuse("bob", 3);
  update(1);
  EXPECT_THAT(posted(1), ElementsAre("firing logins: ada 4"));
  const auto digest = base::in_hex(base::siphash128({}, "ada"));
  const auto message = json::parse(last_).as_object();
  EXPECT_EQ(message.at("digest").as_string(), digest);
  EXPECT_EQ(message.at("client").as_string(), "api_key of ada");
  EXPECT_EQ(message.at("rule").as_string(), "login");
  EXPECT_THAT(std::string(message.at("text").as_string()),
              HasSubstr("alert logins is firing: 4 refusals of client " + digest +
                        " (api_key of ada) by rule login, threshold 3/s"));
  EXPECT_THAT(last_, Not(HasSubstr("s3cret")));
  EXPECT_EQ(log_.back(), "alert logins for client " + digest +
                             " (api_key of ada) fires: 4 within the last period, the threshold is 3/s");
  update(2);
  update(3);
  EXPECT_THAT(posted(3), ElementsAre("ended logins: ada 0"));
  update(4);
  EXPECT_THAT(book_.alerts_to_post(), IsEmpty());
}

TEST_F(ClientAlertsTest, AlertPostsASeparateMessageForEachClient) {
  book_.change({alert("logins")}, at(0));
  update(0);
  refuse("ada", 4);
  refuse("bob", 5);
  update(1);
  EXPECT_THAT(posted(1, false), ElementsAre("firing logins: ada 4", "firing logins: bob 5"));
  EXPECT_THAT(posted(2), ElementsAre("firing logins: ada 4", "firing logins: bob 5"));
  EXPECT_EQ(book_.figures()[0].clients, 2U);
  EXPECT_EQ(book_.figures()[0].fired, 2U);
  EXPECT_EQ(book_.figures()[0].seen, 5U);
  EXPECT_TRUE(book_.figures()[0].firing);
  EXPECT_EQ(book_.figures()[0].since, at(1));
}

TEST_F(ClientAlertsTest, EachOfTwoAlertsOnARuleReportsTheClientsAboveItsOwnThreshold) {
  book_.change({alert("few"), alert("many", 9)}, at(0));
  update(0);
  refuse("ada", 4);
  refuse("bob", 10);
  update(1);
  EXPECT_THAT(posted(1), ElementsAre("firing few: ada 4", "firing few: bob 10", "firing many: bob 10"));
}

TEST_F(ClientAlertsTest, RefusalsBeforeAnAlertIsConfiguredDoNotCount) {
  refuse("ada", 9);
  update(0);
  EXPECT_FALSE(counters_.refused_clients->is_on()) << "no alert watches clients";
  book_.change({alert("logins")}, at(0));
  update(0);
  EXPECT_TRUE(counters_.refused_clients->is_on());
  update(1);
  EXPECT_THAT(posted(1), IsEmpty());
  book_.change({}, at(2));
  update(2);
  EXPECT_FALSE(counters_.refused_clients->is_on());
}

TEST_F(ClientAlertsTest, ClientBeyondTheMaximumNumberOfReportedClientsIsReportedLater) {
  book_.change({alert("logins", 3, 1)}, at(0));
  update(0);
  refuse("ada", 9);
  refuse("bob", 9);
  update(1);
  EXPECT_THAT(posted(1), ElementsAre("firing logins: ada 9"));
  EXPECT_EQ(book_.figures()[0].unreported, 1U);
  for (int second = 2; second < 5; ++second) {
    refuse("bob", 9);
    update(second);
  }
  EXPECT_THAT(posted(5, false), ElementsAre("ended logins: ada 0"));
  refuse("bob", 9);
  update(6);
  EXPECT_THAT(posted(30), ElementsAre("ended logins: ada 0"))
      << "the client's place becomes free when this message is delivered";
  refuse("bob", 9);
  update(31);
  EXPECT_THAT(posted(31), ElementsAre("firing logins: bob 9"));
}

TEST_F(ClientAlertsTest, RemovedAlertPostsAnEndForEachFiringClient) {
  book_.change({alert("logins")}, at(0));
  update(0);
  refuse("ada", 4);
  refuse("bob", 5);
  update(1);
  (void)posted(1);
  book_.change({}, at(2));
  EXPECT_THAT(posted(2), ElementsAre("ended logins: ada 4", "ended logins: bob 5"));
  EXPECT_THAT(book_.alerts_to_post(), IsEmpty());
}

TEST_F(ClientAlertsTest, UnchangedAlertKeepsItsFiringClientsAfterAReload) {
  book_.change({alert("logins")}, at(0));
  update(0);
  refuse("ada", 4);
  update(1);
  (void)posted(1);
  book_.change({alert("more", 9), alert("logins")}, at(2));
  refuse("ada", 4);
  update(2);
  EXPECT_THAT(posted(2), IsEmpty());
  EXPECT_EQ(book_.figures()[1].clients, 1U);
}

TEST_F(ClientAlertsTest, NewProcessContinuesTheAlertOfEachClient) {
  for (auto* book : {&book_, &other_}) book->change({alert("logins")}, at(0));
  update(0);
  refuse("ada", 4);
  refuse("bob", 5);
  update(1);
  EXPECT_THAT(posted(1), ElementsAre("firing logins: ada 4", "firing logins: bob 5"));
  const auto states = book_.retire(other_.alert_ids(), at(2));
  EXPECT_EQ(states.size(), 2U);
  EXPECT_THAT(book_.alerts_to_post(), IsEmpty());
  registry_ = &other_;
  other_.go_on(states, at(2));
  EXPECT_EQ(other_.figures()[0].clients, 2U);
  for (int second = 3; second < 5; ++second) {
    refuse("bob", 5);
    update(second);
  }
  EXPECT_THAT(posted(5), ElementsAre("ended logins: ada 0"));
}

TEST_F(ClientAlertsTest, AlertOnEachClientEndsIfTheNewProcessAlertsOnAllRefusalsInstead) {
  book_.change({alert("logins")}, at(0));
  auto of_all = alert("logins");
  of_all.on = AlertOn::Refusals;
  other_.change({of_all}, at(0));
  update(0);
  refuse("ada", 4);
  update(1);
  (void)posted(1);
  EXPECT_THAT(book_.retire(other_.alert_ids(), at(2)), IsEmpty());
  EXPECT_THAT(posted(2), ElementsAre("ended logins: ada 4"));
}

}  // namespace
}  // namespace weir::admin
