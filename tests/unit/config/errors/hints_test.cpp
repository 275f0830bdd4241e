// Tests that a user who follows the hint of a message gets a valid configuration.
#include "unit/config/configuration.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The text of a configuration around a wrong line, the wrong line, and the line that the message suggests.
struct Hint {
  std::string before, wrong, right;
  std::string after{};
};

void expect_hint(const Hint& hint) {
  SCOPED_TRACE(hint.wrong);
  EXPECT_THAT(mistakes_in(hint.before + hint.wrong + hint.after),
              Contains(EndsWith("write " + hint.right)).Times(1));
  EXPECT_THAT(mistakes_in(hint.before + hint.right + hint.after), IsEmpty());
}

const std::string kWithRule = with_rule("");
const std::string kWithAdapt = kWithRule + "adapt = { upstream = \"api\", ";
const std::string kWithUpstream = with("[[upstream]]\nname = \"b\"\nservers = [\"a:1\"]\n");
const std::string kWithListener = with("[[listener]]\naddress = \"a:1\"\n");

TEST(Hints, ErrorAboutANumberWithoutPercentSignAddsTheSign) {
  for (const auto& hint :
       {Hint{kWithRule, "retry_after_jitter = 10", "retry_after_jitter = \"10%\""},
        Hint{kWithRule, "retry_after_jitter = \"10\"", "retry_after_jitter = \"10%\""},
        Hint{kWithRule, "retry_after_jitter = \"10 %\"", "retry_after_jitter = \"10%\""},
        Hint{with("[server]\n"), "retry_after_jitter = 10", "retry_after_jitter = \"10%\""},
        Hint{kWithRule, "soft = 10", "soft = \"10%\""},
        Hint{kWithAdapt, "errors_above = 5", "errors_above = \"5%\"", " }"},
        Hint{kWithAdapt, "errors_above = \"5\"", "errors_above = \"5%\"", " }"},
        Hint{kWithAdapt + "errors_above = \"5%\", ", "floor = 25", "floor = \"25%\"", " }"},
        Hint{kWithUpstream + "retry = { ", "budget = 10", "budget = \"10%\"", " }"}})
    expect_hint(hint);
}

TEST(Hints, ErrorAboutAValueThatCannotBeCorrectedShowsAnExample) {
  const std::string such = "expected a share such as \"5%\"";
  EXPECT_THAT(mistakes_in(kWithRule + "retry_after_jitter = 200"), Contains(EndsWith(such)));
  EXPECT_THAT(mistakes_in(kWithRule + "retry_after_jitter = 0.1"), Contains(EndsWith(such)));
  EXPECT_THAT(mistakes_in(kWithAdapt + "errors_above = \"5%\", floor = 22 }"), Contains(EndsWith(such)));
  EXPECT_THAT(mistakes_in(kWithListener + "protocols = \"http2\""),
              Contains(EndsWith("expected a list of strings")));
  EXPECT_THAT(mistakes_in(with("[cors]\norigins = \"app.example.com\"")),
              Contains(EndsWith("expected a list of strings")));
  EXPECT_THAT(mistakes_in(kWithUpstream + "timeouts = { connect = 0 }"),
              Contains(EndsWith("expected a duration such as \"10s\"")));
  EXPECT_THAT(mistakes_in(with("[server]\nidle_timeout = \"0\"")), Contains(Not(HasSubstr("\"0s\""))));
}

TEST(Hints, ErrorAboutAnInvalidBandwidthShowsTheValueInUnitsOfWeir) {
  const std::string rule = with("[[rule]]\nname = \"x\"\n");
  for (const auto& [wrong, right] : {std::pair{"1000000", "\"1000000/s\""},
                                     {"\"1MiB\"", "\"1MiB/s\""},
                                     {"\"1mb/s\"", "\"1MB/s\""},
                                     {"\"1 MB/s\"", "\"1MB/s\""},
                                     {"\"1MB per second\"", "\"1MB/s\""},
                                     {"\"1MiBps\"", "\"1MiB/s\""},
                                     {"\"1M/s\"", "\"1MiB/s\""},
                                     {"\"60MB/minute\"", "\"60MB/min\""}})
    expect_hint({rule, std::string("bandwidth = ") + wrong, std::string("bandwidth = ") + right});
  for (const auto* wrong : {"8Mb/s", "8Mbit/s", "100B/s", "10GB/s", "fast", "", "/s", "per"})
    EXPECT_THAT(mistakes_in(rule + "bandwidth = \"" + wrong + "\""),
                Contains(EndsWith(
                    "expected a size and a period from \"1KiB/s\" to \"1000MB/s\", such as \"1MiB/s\"")))
        << wrong;
}

TEST(Hints, ErrorAboutAWeeklyLimitSuggestsSevenDaysOrAlignWeek) {
  const std::string rule = with("[[rule]]\nname = \"x\"\n");
  const auto found = mistakes_in(rule + "limit = \"3/week\"\n");
  EXPECT_THAT(found,
              Contains(HasSubstr("write limit = \"3/7days\", or set algorithm = \"fixed_window\" and align = "
                                 "\"week\" in the rule")));
  EXPECT_THAT(mistakes_in(rule + "limit = \"3/7days\"\n"), IsEmpty());
  EXPECT_THAT(mistakes_in(rule + "limit = \"3/week\"\nalgorithm = \"fixed_window\"\nalign = \"week\"\n"),
              IsEmpty());
  const std::string weekly = rule + "algorithm = \"fixed_window\"\nalign = \"week\"\n";
  EXPECT_THAT(mistakes_in(weekly + "limit = 3\n"),
              Contains(HasSubstr("found 3; expected \"3/week\", because of align = \"week\"")));
  EXPECT_THAT(mistakes_in(weekly + "limit = \"3\"\n"), Contains(HasSubstr("expected \"3/week\"")));
}

TEST(Hints, ErrorAboutAValueWhereATableIsExpectedShowsTheTable) {
  const std::string cost = kWithRule + "cost = { response_json = \"/usage/total\", reserve = 5, ";
  for (const auto& hint :
       {Hint{kWithRule, "penalty = \"10min\"", "penalty = { for = \"10min\" }"},
        Hint{kWithRule, "penalty = 10", "penalty = { for = \"10s\" }"},
        Hint{kWithRule, "penalty = true", "penalty = { for = \"30s\" }"},
        Hint{kWithRule, "adapt = \"api\"", "adapt = { upstream = \"api\", latency_above = \"500ms\" }"},
        Hint{cost, "stream = true", "stream = { per_event = 1 }", " }"},
        Hint{kWithRule, "headers = [\"X-A: b\"]", "headers = { X-Reason = \"text\" }"},
        Hint{"", "cors = [\"*\"]", "cors = { origins = [\"*\"] }", "\n" + kLeast},
        Hint{"", "cors = true", "cors = { origins = [\"https://app.example.com\"] }", "\n" + kLeast},
        Hint{kWithListener, "http2 = true", "protocols = [\"http/1.1\", \"h2c\"]"}})
    expect_hint(hint);
  expect_hint({kWithListener, "http2 = false", "protocols = [\"http/1.1\"]"});
  EXPECT_THAT(mistakes_in(with("[[cors]]\norigins = [\"*\"]\n")),
              Contains(EndsWith("write [cors] instead of [[cors]]")));
  EXPECT_THAT(mistakes_in(kWithListener + "protocols = [\"h2c\"]\nhttp2 = true"),
              Contains(EndsWith("found true or false; expected a table")));
}

TEST(Hints, ErrorAboutAnUnknownKeyShowsTheKeyOfWeir) {
  const std::string penalty = kWithRule + "penalty = { for = \"10min\", ";
  const std::string cors = with("[cors]\norigins = [\"https://a.example\"]\n");
  for (const auto& hint :
       {Hint{kWithRule + "penalty = { ", "duration = \"10min\"", "for = \"10min\"", " }"},
        Hint{penalty, "max = \"1h\"", "most = \"1h\"", " }"}, Hint{penalty, "factor = 3", "grows = 3", " }"},
        Hint{penalty, "threshold = \"5\"", "after = 5", " }"},
        Hint{kWithRule, "ban = \"10min\"", "penalty = { for = \"10min\" }"},
        Hint{kWithAdapt, "error_rate = 5", "errors_above = \"5%\"", " }"},
        Hint{with("[cors]\n"), "allow_origins = [\"*\"]", "origins = [\"*\"]"},
        Hint{cors, "allow_credentials = \"yes\"", "credentials = true"},
        Hint{kWithListener, "protocol = \"h2c\"", "protocols = [\"h2c\"]"},
        Hint{kWithListener + "http2 = { ", "max_concurrent_streams = 50", "max_streams = 50", " }"},
        Hint{with("[[alert]]\nrule = \"all\"\nrefused_above = \"1/s\"\n"), "url = \"http://a/b\"",
             "webhook = \"http://a/b\""}})
    expect_hint(hint);
  const std::string cost = "cost = { response_json = \"/usage/total_tokens\", reserve = 5 }";
  EXPECT_THAT(mistakes_in(kWithRule + "reserve = 5"), Contains(EndsWith("write it in cost: " + cost)));
  EXPECT_THAT(mistakes_in(kWithRule + cost), IsEmpty());
  EXPECT_THAT(mistakes_in(cors + "allow_methods = [\"GET\"]"),
              Contains(HasSubstr("leave it out: preflight")));
  EXPECT_THAT(mistakes_in(kWithUpstream + "http2 = true"), Contains(HasSubstr("write protocol = \"h2c\"")));
}

}  // namespace
}  // namespace weir::config::test
