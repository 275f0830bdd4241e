#include "server/keys/key_search.hpp"

#include "weir/base/hex.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace weir::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr limit::Key kPaula{.lo = 0x0394'd84e'2bcd'81a3, .hi = 0x27de'914d'7f28'9452};
constexpr limit::Key kAda{.lo = 2, .hi = 0x27de'914d'0000'0001};
constexpr limit::Key kAdasOther{.lo = 3, .hi = 0x1111'2222'0000'0001};
constexpr limit::Key kNobody{.lo = 4, .hi = 0xffff'ffff'ffff'fffe};

class KeySearch : public testing::Test {
 protected:
  KeySearch() {
    add(top_.refused, kPaula, "api_key of paula", 4);
    add(top_.admitted, kPaula, "api_key of paula", 4);
    add(top_.admitted, kAda, "api_key of ada", 0);
    add(top_.admitted, kAdasOther, "api_key of ada", 0);
  }
  static void add(observe::SpaceSaving& side, const limit::Key& name, std::string_view text,
                  limit::LimiterId limiter_id) {
    const auto write = [&](std::span<char> room) {
      const auto kept = text.substr(0, room.size());
      std::copy(kept.begin(), kept.end(), room.begin());
      return kept.size();
    };
    side.add(name, 1, write, limiter_id);
  }
  [[nodiscard]] std::vector<limit::Key> find(std::vector<std::string> texts) const {
    std::vector<limit::Key> names;
    for (const auto& one : find_shown(rule_, top_, texts)) names.push_back(one.name);
    return names;
  }

  policy::Rule rule_{
      .name = "per-key", .key = {{{policy::Attribute::ApiKey, {}}}}, .limiter = *limit::Concurrency::make(1)};
  observe::TopOfRule top_{observe::SpaceSaving(8), observe::SpaceSaving(8)};
};

TEST_F(KeySearch, FindsAClientByItsShownLabelOrDigest) {
  for (const auto& texts : std::vector<std::vector<std::string>>{{"api_key of paula"},
                                                                 {"api_key", "of", "paula"},
                                                                 {"user:paula"},
                                                                 {base::in_hex(kPaula)},
                                                                 {"27de914d7f"},
                                                                 {"27DE914D7F"},
                                                                 {"digest:27de914d7f"},
                                                                 {"api_key of paula 27de914d"},
                                                                 {"user:paula", "27de914d"}})
    EXPECT_THAT(find(texts), ElementsAre(kPaula)) << texts.front();
}

TEST_F(KeySearch, FindsEveryClientThatMatchesAnAmbiguousLabelOrDigest) {
  EXPECT_THAT(find({"user:ada"}), ElementsAre(kAda, kAdasOther));
  EXPECT_THAT(find({"27de914d"}), ElementsAre(kPaula, kAda));
}

TEST_F(KeySearch, FindsNoClientForUnknownTexts) {
  for (const auto* text : {"paula", "user:paul", "user:paula2", "27de914", "api_key of ada 27de914d7f",
                           "api_key of paula 11112222", "ffffffffffffffff", ""})
    EXPECT_THAT(find({text}), IsEmpty()) << text;
  EXPECT_THAT(find({}), IsEmpty());
}

TEST_F(KeySearch, SearchFindsTheLimiterThatCountsTheClient) {
  const auto found = find_shown(rule_, top_, std::vector<std::string>{"user:paula"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].limiter_id, 4U);
  EXPECT_EQ(found[0].label, "api_key of paula 27de914d");
}

TEST_F(KeySearch, WholeLabelFindsAClientWhoseShownLabelIsTruncated) {
  const std::string name(60, 'x');
  add(top_.refused, kNobody, "api_key of " + name, 0);
  EXPECT_THAT(find({"user:" + name}), ElementsAre(kNobody));
}

TEST_F(KeySearch, CompleteDigestFindsAClientThatNoListShows) {
  const auto read = read_digest(std::vector{base::in_hex(kNobody)});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, kNobody);
  EXPECT_EQ(read->limiter_id, std::nullopt);
  EXPECT_FALSE(read_digest(std::vector<std::string>{"27de914d"}));
  EXPECT_FALSE(read_digest(std::vector<std::string>{"user:paula"}));
}

TEST_F(KeySearch, TellsWhetherAClientIsInTheListsOfTopClients) {
  EXPECT_TRUE(lists(top_, kAda));
  EXPECT_FALSE(lists(top_, kNobody));
}

}  // namespace
}  // namespace weir::server
