#include "redis/bill.hpp"

#include <array>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kNow = 1'800'000'000'000'000;

class Outcomes : public ::testing::Test {
 protected:
  limit::Limiter three_in_seven_ = limit::TokenBucket::make({3, 7s}, 2).value();
  std::array<limit::Charge, 2> bill_{limit::Charge{{1, 1}, &three_in_seven_},
                                     limit::Charge{{2, 2}, &three_in_seven_, 1, 0, false}};
  std::array<limit::Outcome, 2> outcomes_;
  base::TimePoint now_{};

  bool read(std::vector<std::int64_t> numbers, Reply::Kind kind = Reply::Kind::Numbers) {
    return read_outcomes({kind, "", std::move(numbers)}, bill_, outcomes_, now_) == Reading::Answer;
  }
};

TEST_F(Outcomes, ComeFromTheTatAndTheServersTime) {
  ASSERT_TRUE(read({kNow, 1, 0, 0, 0, 2'333'333, 2, 0}));
  EXPECT_EQ(now_.time_since_epoch().count(), kNow);
  EXPECT_TRUE(outcomes_[0].allowed);
  EXPECT_EQ(outcomes_[0].remaining, 1U);
  EXPECT_FALSE(outcomes_[1].allowed);  // a third of a microsecond too early
  EXPECT_EQ(outcomes_[1].retry_after, 1us);
  ASSERT_TRUE(read({kNow, 1, 0, 0, 0, 2'333'333, 1, 0}));
  EXPECT_TRUE(outcomes_[1].allowed);
}

TEST_F(Outcomes, AreNotReadFromAnythingElse) {
  EXPECT_FALSE(read({kNow, 1, 0, 0, 0, 0, 0, 0}, Reply::Kind::Other));
  EXPECT_FALSE(read({kNow, 1, 0, 0, 0}));
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow * 8, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, -1, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, 0, 3, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, 0, -1, 0, 0, 0, 0}));
}

TEST_F(Outcomes, MustAgreeWithTheScript) {
  EXPECT_FALSE(read({kNow, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(read({kNow, 1, 5'000'000, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(read({kNow, 0, 5'000'000, 0, 0, 0, 0, 0}));
}

TEST(KeyName, IsTheDigestInLettersThatNeedNoEscape) {
  EXPECT_EQ(key_name("weir", {0, 0}), "weir:AAAAAAAAAAAAAAAAAAAAAA");
  // The bytes ff ee dd cc bb aa 99 88 77 66 55 44 33 22 11 00, as `basenc --base64url` has them.
  EXPECT_EQ(key_name("w", {0x8899AABBCCDDEEFF, 0x0011223344556677}), "w:_-7dzLuqmYh3ZlVEMyIRAA");
  std::set<std::string> names;
  for (int bit = 0; bit < 128; ++bit)
    names.insert(key_name("weir", bit < 64 ? limit::Key{1ULL << bit, 0} : limit::Key{0, 1ULL << (bit - 64)}));
  EXPECT_EQ(names.size(), 128U);
}

}  // namespace
}  // namespace weir::redis
