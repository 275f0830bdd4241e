#include "redis/scripts/bill.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

// The expected slots are the output of `redis-cli CLUSTER KEYSLOT` for the same names.
TEST(Tags, HashTagDeterminesTheClusterSlotOfAKey) {
  const auto text = [](limit::SlotHash place) {
    const auto tag = tag_of(place);
    return std::string(tag.data(), tag.size());
  };
  EXPECT_EQ(text(0), "AAA");
  EXPECT_EQ(text(0xffff), "P__");
  EXPECT_EQ(text(0x1234), "BI0");
  for (const unsigned number : {0U, 1U, 0x1234U, 0xffffU}) {
    const auto place = static_cast<limit::SlotHash>(number);
    EXPECT_EQ(slot_of(place), slot_of("weir:{" + text(place) + "}probe"));
    EXPECT_EQ(limit::slot_hash_of(limit::with_slot_hash({~0ULL, ~0ULL}, place)), place);
  }
  EXPECT_EQ(limit::with_slot_hash({1, 2}, 0), (limit::Key{1, 2})) << "the rest of the name is unchanged";
}

TEST(Tags, HashTagsCoverNearlyAllClusterSlots) {
  std::vector<int> tags(kSlots);
  for (unsigned place = 0; place <= 0xffff; ++place) ++tags[slot_of(static_cast<limit::SlotHash>(place))];
  EXPECT_EQ(std::count(tags.begin(), tags.end(), 0), 6);
  EXPECT_EQ(*std::max_element(tags.begin(), tags.end()), 8) << "no node has much more than its share of keys";
}

TEST(Tags, HashTagsAppearOnlyInTheKeysOfACluster) {
  const limit::Charge charge{limit::with_slot_hash({0, 0}, 0x1234), nullptr};
  std::string plain, tagged;
  const limit::Limiter bucket = limit::TokenBucket::make({1, std::chrono::seconds(1)}, 1).value();
  limit::Charge line = charge;
  line.limiter = &bucket;
  const Refund refund{line, {}};
  append_refund(plain, "sha", {"w"}, {&refund, 1}, 1);
  append_refund(tagged, "sha", {"w", true}, {&refund, 1}, 1);
  EXPECT_NE(plain.find("$24\r\nw:" + key_name("w", line.key).substr(2) + "\r\n"), std::string::npos);
  EXPECT_NE(tagged.find("$29\r\nw:{BI0}" + key_name("w", line.key).substr(2) + "\r\n"), std::string::npos);
}

using namespace std::chrono_literals;

constexpr std::int64_t kNow = 1'800'000'000'000'000;

class Outcomes : public ::testing::Test {
 protected:
  limit::Limiter three_in_seven_ = limit::TokenBucket::make({3, 7s}, 2).value();
  std::array<limit::Charge, 2> bill_{limit::Charge{{1, 1}, &three_in_seven_},
                                     limit::Charge{{2, 2}, &three_in_seven_, 1, 0, false}};
  std::array<limit::Outcome, 2> outcomes_;
  base::TimePoint now_{};

  // Reads a reply that consists of `numbers` and the call's number.
  bool read(std::vector<std::int64_t> numbers, Reply::Kind kind = Reply::Kind::Numbers) {
    numbers.push_back(9);
    return read_outcomes({kind, "", std::move(numbers)}, bill_, outcomes_, now_) == ReplyReading::Answer;
  }
};

TEST_F(Outcomes, AreComputedFromTheStateAndTheTimeInTheReplyOfRedis) {
  ASSERT_TRUE(read({kNow, 1, 0, 0, 0, 2'333'333, 2, 0}));
  EXPECT_EQ(now_.time_since_epoch().count(), kNow);
  EXPECT_TRUE(outcomes_[0].allowed);
  EXPECT_EQ(outcomes_[0].remaining, 1U);
  EXPECT_FALSE(outcomes_[1].allowed);  // 2,333,333 2/3 µs are spent; at most 2,333,333 1/3 µs may be
  EXPECT_EQ(outcomes_[1].retry_after, 1us);
  ASSERT_TRUE(read({kNow, 1, 0, 0, 0, 2'333'333, 1, 0}));
  EXPECT_TRUE(outcomes_[1].allowed);
}

TEST_F(Outcomes, InvalidRepliesAreRejected) {
  EXPECT_FALSE(read({kNow, 1, 0, 0, 0, 0, 0, 0}, Reply::Kind::Other));
  EXPECT_FALSE(read({kNow, 1, 0, 0, 0}));
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow * 8, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, -1, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, 0, 3, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, 0, -1, 0, 0, 0, 0}));
}

TEST_F(Outcomes, RepliesThatContradictTheDecisionOfTheScriptAreRejected) {
  EXPECT_FALSE(read({kNow, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, 5'000'000, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(read({kNow, 0, 5'000'000, 0, 0, 0, 0, 0}));
}

// Regression, found by tests/fuzz/redis_answer_fuzz.cpp: times overflowed if a bucket had too many spent
// units.
TEST(SteppedOutcomes, ReplyWithMoreSpentUnitsThanPossibleIsRejected) {
  const limit::Limiter stepped = limit::SteppedBucket::make({1, 24h * 30}, 5).value();
  const std::array bill{limit::Charge{{1, 1}, &stepped}};
  std::array<limit::Outcome, 1> outcomes;
  base::TimePoint now{};
  const auto read = [&](std::int64_t spent) {
    return read_outcomes({Reply::Kind::Numbers, "", {kNow, 0, kNow, spent, 0, 9}}, bill, outcomes, now);
  };
  EXPECT_EQ(read(5), ReplyReading::Answer);
  EXPECT_FALSE(outcomes[0].allowed);
  EXPECT_EQ(read(std::int64_t{1} << 50), ReplyReading::Nonsense);
}

TEST(Answers, ReplyWithoutTheNumberOfItsCallIsRejected) {
  EXPECT_TRUE(is_answer_to(9, {Reply::Kind::Numbers, "", {1, 9}}));
  EXPECT_FALSE(is_answer_to(9, {Reply::Kind::Numbers, "", {9, 8}}));
  EXPECT_FALSE(is_answer_to(9, {Reply::Kind::Numbers, "", {}}));
  EXPECT_FALSE(is_answer_to(9, {Reply::Kind::Number, "", {9}}));
  EXPECT_FALSE(is_answer_to(9, {Reply::Kind::Error, "ERR", {}}));
}

TEST(KeyName, NameOfAKeyInRedisIsItsDigestInUrlSafeBase64) {
  EXPECT_EQ(key_name("weir", {0, 0}), "weir:AAAAAAAAAAAAAAAAAAAAAA");
  // The digest's bytes are ff ee dd cc bb aa 99 88 77 66 55 44 33 22 11 00. The name is the output of `basenc
  // --base64url`.
  EXPECT_EQ(key_name("w", {0x8899AABBCCDDEEFF, 0x0011223344556677}), "w:_-7dzLuqmYh3ZlVEMyIRAA");
  std::set<std::string> names;
  for (int bit = 0; bit < 128; ++bit)
    names.insert(key_name("weir", bit < 64 ? limit::Key{1ULL << bit, 0} : limit::Key{0, 1ULL << (bit - 64)}));
  EXPECT_EQ(names.size(), 128U);
}

}  // namespace
}  // namespace weir::redis
