// Reads valid [[alert]] tables, and tests the exact messages about mistakes in them.
#include "unit/config/configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;

constexpr const char* kRule = "[[rule]]\nname = \"login\"\nlimit = \"5/min\"\n";

std::string alert(const std::string& lines) {
  return with(std::string(kRule) + "[[alert]]\n" + lines);
}
std::vector<std::string> alert_mistakes(const std::string& lines) {
  auto found = mistakes_in(alert(lines), "weir.toml");
  for (auto& line : found) line.erase(0, line.find("alert"));
  return found;
}
constexpr const char* kHook = "webhook = \"https://hooks.example.com/weir?x=1#y\"\n";

TEST(Alerts, AlertHasTheConfiguredSettingsAndDefaultsForTheRest) {
  const auto settings = parse_settings(
      alert(std::string("rule = \"login\"\nrefused_above = \"100/min\"\n") + kHook), "weir.toml");
  ASSERT_EQ(settings.alerts.size(), 1U);
  const auto& read = settings.alerts[0];
  EXPECT_EQ(read.name, "login");
  EXPECT_EQ(read.on, admin::AlertOn::Refusals);
  EXPECT_EQ(read.surge.above.count, 100U);
  EXPECT_EQ(read.surge.lasting, base::Duration{0});
  EXPECT_EQ(read.surge.repeat, std::chrono::hours(4));
  EXPECT_EQ(read.webhook.address.to_string(), "hooks.example.com:443");
  EXPECT_TRUE(read.webhook.tls);
  EXPECT_EQ(read.webhook.target, "/weir?x=1");
  EXPECT_EQ(read.posts.capacity(), 6U);
  EXPECT_EQ(read.attempts, 5U);
  EXPECT_EQ(read.timeout, std::chrono::seconds(5));
}

TEST(Alerts, AlertMustNameExactlyOneRuleOrUpstreamOrStore) {
  EXPECT_THAT(alert_mistakes(std::string("refused_above = \"1/s\"\n") + kHook),
              ElementsAre("alert[#1]: found none of rule, upstream and store; expected one, such as "
                          "rule = \"all\""));
  EXPECT_THAT(
      alert_mistakes(std::string("rule = \"login\"\nupstream = \"api\"\nrefused_above = \"1/s\"\n") + kHook),
      ElementsAre("alert[#1]: found 2 of rule, upstream and store; expected exactly one"));
  EXPECT_THAT(alert_mistakes(std::string("rule = \"logon\"\nrefused_above = \"1/s\"\n") + kHook),
              ElementsAre("alert[#1].rule: found \"logon\"; expected the name of a rule"));
  EXPECT_THAT(alert_mistakes(std::string("upstream = \"nobody\"\nfailures_above = \"1/s\"\n") + kHook),
              ElementsAre("alert[#1].upstream: found \"nobody\"; expected the name of an upstream"));
  EXPECT_THAT(alert_mistakes(std::string("store = \"redis\"\nfailures_above = \"1/s\"\n") + kHook),
              ElementsAre("alert[#1].store: found \"redis\", but no rule is kept in Redis; expected a "
                          "[[rule]] with store = \"redis\""));
}

TEST(Alerts, AlertMustHaveTheThresholdThatFitsWhatItWatches) {
  EXPECT_THAT(alert_mistakes(std::string("rule = \"login\"\n") + kHook),
              ElementsAre("alert[#1].refused_above: missing; expected a rate such as \"100/min\""));
  EXPECT_THAT(alert_mistakes(std::string("rule = \"login\"\nfailures_above = \"1/s\"\n") + kHook),
              ElementsAre("alert[#1].failures_above: found with a rule; expected refused_above"));
  EXPECT_THAT(alert_mistakes(std::string("rule = \"login\"\nrefused_above = \"5/100ms\"\n") + kHook),
              ElementsAre("alert[#1].refused_above: found a period below one second; expected at least 1s"));
}

TEST(Alerts, AlertMayWatchEachClientOfARule) {
  const auto one = [](const std::string& lines) {
    return parse_settings(alert("rule = \"login\"\nkey_refused_above = \"9/min\"\n" + lines + kHook),
                          "weir.toml")
        .alerts.at(0);
  };
  EXPECT_EQ(one("").on, admin::AlertOn::ClientRefusals);
  EXPECT_EQ(one("").surge.above.count, 9U);
  EXPECT_EQ(one("").max_clients, 10U);
  EXPECT_EQ(one("max_clients = 100\n").max_clients, 100U);
}

TEST(Alerts, RejectsAPerClientThresholdThatDoesNotFitTheAlert) {
  const auto of = [](const std::string& lines) { return alert_mistakes(lines + kHook); };
  EXPECT_THAT(
      of("rule = \"login\"\nrefused_above = \"9/s\"\nkey_refused_above = \"1/s\"\n"),
      ElementsAre("alert[#1].refused_above: found with key_refused_above; expected one of them: write "
                  "another [[alert]]"));
  EXPECT_THAT(of("upstream = \"api\"\nkey_refused_above = \"1/s\"\n"),
              ElementsAre("alert[#1].key_refused_above: found with an upstream or a store; expected "
                          "failures_above"));
  EXPECT_THAT(
      of("rule = \"login\"\nkey_refused_above = \"5/100ms\"\n"),
      ElementsAre("alert[#1].key_refused_above: found a period below one second; expected at least 1s"));
  EXPECT_THAT(of("rule = \"login\"\nrefused_above = \"1/s\"\nmax_clients = 5\n"),
              ElementsAre("alert[#1].max_clients: found without key_refused_above; remove it, or write "
                          "key_refused_above instead of refused_above"));
  EXPECT_THAT(of("rule = \"login\"\nkey_refused_above = \"1/s\"\nmax_clients = 101\n").size(), 1U);
}

TEST(Alerts, RejectsAnAlertOnEachClientIfTheRuleCountsAllClientsTogether) {
  const auto mistakes =
      mistakes_in(with("[[rule]]\nname = \"together\"\nkey = []\nlimit = \"5/min\"\n[[alert]]\nrule "
                       "= \"together\"\nkey_refused_above = \"1/s\"\n" +
                       std::string(kHook)));
  ASSERT_EQ(mistakes.size(), 1U);
  EXPECT_THAT(mistakes[0],
              ::testing::HasSubstr("alert[#1].key_refused_above: found with rule \"together\", whose key is "
                                   "the same for all clients; expected refused_above"));
}

TEST(Alerts, RejectsAnAlertOnARuleThatRefusesNothing) {
  for (const char* threshold : {"refused_above", "key_refused_above"})
    EXPECT_THAT(mistakes_in(with("[[rule]]\nname = \"pace\"\nkey = [\"ip\"]\nbandwidth = \"1MiB/s\"\n"
                                 "[[alert]]\nrule = \"pace\"\n" +
                                 std::string(threshold) + " = \"1/s\"\n" + kHook)),
                ElementsAre(::testing::HasSubstr(
                    "alert[#1].rule: found \"pace\", which has bandwidth and refuses nothing; "
                    "expected a rule with limit")))
        << threshold;
}

TEST(Alerts, RejectsAWebhookWithAnInvalidUrlOrAUserName) {
  for (const char* wrong : {"hooks.example.com", "ftp://a/b", "https://", "https://user@a/b", "https://a:0/",
                            "https://a/ b", "https://unix:/run/x"})
    EXPECT_THAT(alert_mistakes("rule = \"login\"\nrefused_above = \"1/s\"\nwebhook = \"" +
                               std::string(wrong) + "\"\n"),
                ElementsAre("alert[#1].webhook: found an address that is no webhook; expected one such as "
                            "\"https://hooks.example.com/weir\", at most 2048 characters, without a user"))
        << wrong;
  EXPECT_THAT(
      alert_mistakes("rule = \"login\"\nrefused_above = \"1/s\"\nwebhook = \"http://a/b\"\nca = \"x\"\n"),
      ElementsAre("alert[#1].ca: found with a webhook that is not https://; remove ca, or write https://"));
  EXPECT_THAT(
      alert_mistakes(std::string("rule = \"login\"\nrefused_above = \"1/s\"\nauthorization = \"a\\nb\"\n") +
                     kHook),
      ElementsAre(
          "alert[#1].authorization: found characters that a header cannot contain; expected visible ASCII"));
}

TEST(Alerts, RejectsTwoAlertsWithTheSameName) {
  const std::string one = std::string("rule = \"login\"\nrefused_above = \"1/s\"\n") + kHook;
  EXPECT_THAT(alert_mistakes(one + "[[alert]]\n" + one),
              ElementsAre("alert[#2].name: found \"login\" a second time; expected a unique name"));
}

TEST(AlertMistakes, ErrorExplainsAWrongWebhookPortAndNeverShowsAPassword) {
  const auto of = [](const std::string& webhook) {
    const auto mistakes = mistakes_in(
        with("[[alert]]\nstore = \"redis\"\nfailures_above = \"1/s\"\nwebhook = \"" + webhook + "\"\n"));
    return ::testing::PrintToString(mistakes);
  };
  EXPECT_THAT(of("http://a:99999/hook"),
              ::testing::HasSubstr("the port 99999 is above 65535; expected one such as"));
  EXPECT_THAT(of("https://a:b"),
              ::testing::HasSubstr("is not a number from 0 to 65535; expected one such as"));
  EXPECT_THAT(of("http://u:s3cret@a/"), ::testing::Not(::testing::HasSubstr("s3cret")));
}

}  // namespace
}  // namespace weir::config::test
