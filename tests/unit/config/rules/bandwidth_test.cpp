// Tests rules with `bandwidth`: what weir reads, and which mistakes it reports.
#include "unit/config/configuration.hpp"

#include <chrono>
#include <string>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string paced(const std::string& bandwidth, const std::string& more = "") {
  return with("[[rule]]\nname = \"x\"\nbandwidth = \"" + bandwidth + "\"\n" + more);
}

TEST(Bandwidth, RuleWithBandwidthHasALeakyBucketOfOctetsInMemory) {
  const auto rules = parse_settings(paced("1MiB/s",
                                          "key = [\"ip\"]\non_missing = \"reject\"\n"
                                          "[state]\nstore = \"redis\"\nredis = { url = \"redis://a\" }\n"),
                                    kFile)
                         .rules;
  const auto& rule = rules.back();
  EXPECT_EQ(rule.bandwidth, "1MiB/s");
  EXPECT_EQ(rule.store, policy::Store::Memory);
  EXPECT_EQ(rule.on_missing, policy::OnMissing::Reject);
  const auto& bucket = std::get<limit::LeakyBucket>(*rule.limiter);
  EXPECT_TRUE(bucket.paces());
  EXPECT_EQ(bucket.gcra_core().max_wait(), std::chrono::seconds(10));
  const auto rate = bucket.gcra_core().rate();
  EXPECT_EQ(rate.count, 16'384U);
  EXPECT_EQ(rate.period, base::Duration(15'625)) << "16,384 octets in a 64th of a second, in lowest terms";
}

TEST(Bandwidth, MustBeASizeAndAPeriodWithinBounds) {
  for (const char* right : {"1KiB/s", "1024/s", "1000MB/s", "64KiB/100ms", "10MiB/min", "1GiB/h"})
    EXPECT_THAT(mistakes_in(paced(right)), IsEmpty()) << right;
  for (const std::string wrong :
       {"MiB", "1MiB/", "/s", "1MiB/s/s", "1023/s", "1001MB/s", "1MiB/week", "x/s", "1GiB/30day", "-1/s"})
    EXPECT_THAT(
        mistakes_in(paced(wrong)),
        ElementsAre("weir.toml:13: rule[x].bandwidth: found \"" + wrong +
                    "\"; expected a size and a period from \"1KiB/s\" to \"1000MB/s\", such as \"1MiB/s\""));
}

TEST(Bandwidth, CannotBeCombinedWithOtherLimitSettingsInARule) {
  for (const char* other :
       {"limit = \"10/s\"", "burst = 5", "cost = 2", "mode = \"shadow\"", "messages = \"5/s\""}) {
    const std::string line(other);
    EXPECT_THAT(
        mistakes_in(paced("1MiB/s", line + "\n")),
        ElementsAre("weir.toml:14: rule[x]." + line.substr(0, line.find(' ')) +
                    ": found beside bandwidth, which paces bodies and refuses nothing; expected it in a rule "
                    "of its own"));
  }
  EXPECT_THAT(
      mistakes_in(paced("1MiB/s", "store = \"redis\"\n")),
      ElementsAre("weir.toml:14: rule[x].store: found \"redis\" beside bandwidth, which each weir paces by "
                  "itself; expected store = \"memory\", or no store"));
  EXPECT_THAT(mistakes_in(paced("1MiB/s", "match = { body_contains = \"a\" }\n")),
              ElementsAre("weir.toml:14: rule[x].match: found a condition on the body beside bandwidth; "
                          "expected conditions on "
                          "the head"));
  EXPECT_THAT(mistakes_in(paced("1MiB/s", "key = [\"json:/user\"]\n")),
              ElementsAre("weir.toml:14: rule[x].key: found a value of the body beside bandwidth; expected "
                          "attributes of the head"));
}

}  // namespace
}  // namespace weir::config::test
