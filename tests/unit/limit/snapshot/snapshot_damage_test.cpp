// Snapshots with a valid digest but with contents that no table can have written. The reader must reject each
// of them.
#include "limit/snapshot/snapshot_words.hpp"
#include "unit/limit/snapshot/snapshots.hpp"
#include "unit/limit/traffic.hpp"

#include "weir/limit/snapshot.hpp"

#include <string>
#include <utility>
#include <vector>

namespace weir::limit {
namespace {

constexpr unsigned kDrainedAt = 9;  // the first bit of drained_at in the first word of a key
constexpr std::uint64_t kIsLog = std::uint64_t{1} << 8;

using Words = std::vector<std::uint64_t>;

constexpr std::uint64_t kMark = 1'700'000'000'000'000, kKey = 16, kEntries = 19, kVariant = 7, kNumbers = 8;

// A snapshot of one rule and one key, word by word.
class SnapshotDamage : public testing::Test {
 protected:
  static Words head() {
    return {kSnapshotMagic,
            kNoPenaltyVersion,
            kMark,  // saved_at
            kMark,  // machine_at
            1,
            2,  // both words of the key of client names
            1,  // number of rules
            1,  // length of the rule's name
            'r',
            0,  // number of limiters
            1,  // number of variants
            kVariant,
            kNumbers,
            0,   // limiter ID of the variant
            0,   // the variant has no limiter
            0};  // number of overflow cells
  }
  static Words of(const Limiter& limiter) {
    auto words = head();
    words.insert(words.end(), {kMark << kDrainedAt, 3, 4});
    const auto cell = step(limiter, {}, kStart, 1).next;
    words.insert(words.end(), {cell.words[0], cell.words[1]});
    return words;
  }
  static Words of_log(const std::vector<LogEntry>& entries) {
    auto words = head();
    words.insert(words.end(), {kMark << kDrainedAt | kIsLog, 3, 4, entries.size()});
    for (const auto& [mark, cost] : entries) words.insert(words.end(), {mark, cost});
    return words;
  }
  // Appends the end mark, the number of keys and the digest. Returns the reader's error, or an empty text if
  // the reader accepts the snapshot.
  static std::string fault_of(const Words& words, const Limiter& limiter, std::uint64_t keys = 1) {
    std::string bytes;
    const ByteSink sink = [&](std::string_view more) { bytes += more; };
    WordWriter out(sink);
    for (const auto word : words) out.put(word);
    out.put(kSnapshotEnd);
    out.put(keys);
    out.finish();
    const SavedRule rule{.name = "r", .variants = {{kVariant, kNumbers}}, .limiters = {&limiter}};
    const auto checked = check_snapshot(source_of(bytes), {&rule, 1});
    return checked ? "" : checked.error().message;
  }
  [[nodiscard]] std::string fault_of_daily(std::size_t at, std::uint64_t word) const {
    auto words = of(daily_);
    words.at(at) = word;
    return fault_of(words, daily_);
  }

  const Limiter daily_ = FixedWindow::make({5, 24h}).value();
  const Limiter exact_ = SlidingLog::make({5, 24h}).value();
  const Limiter buckets_ = SlidingLog::make({5, 24h}, 10).value();
};

TEST_F(SnapshotDamage, AcceptsAnIntactSnapshot) {
  EXPECT_EQ(fault_of(of(daily_), daily_), "");
  EXPECT_EQ(fault_of(of_log({{kMark, 1}}), exact_), "");
  EXPECT_EQ(fault_of(of_log({{kMark, 1}}), buckets_), "");
}

TEST_F(SnapshotDamage, RejectsASnapshotWithImpossibleTimesOrRules) {
  EXPECT_EQ(fault_of_daily(2, kLatest), "");
  EXPECT_EQ(fault_of_daily(2, kLatest + 1), "is damaged: its time is impossible");
  EXPECT_EQ(fault_of_daily(3, kLatest), "");
  EXPECT_EQ(fault_of_daily(3, kLatest + 1), "is damaged: its time is impossible");
  EXPECT_EQ(fault_of_daily(kKey, kLatest << kDrainedAt), "");
  EXPECT_EQ(fault_of_daily(kKey, (kLatest + 1) << kDrainedAt), "is damaged: a key has no valid rule or time");
  EXPECT_EQ(fault_of_daily(kKey, kMark << kDrainedAt | 1), "is damaged: a key has no valid rule or time");
  auto words = head();
  words.back() = 1;
  words.insert(words.end(), {1, kVariant, 0, 0, 0, 0});
  EXPECT_EQ(fault_of(words, daily_, 0), "is damaged: it refers to a rule that it does not contain");
}

TEST_F(SnapshotDamage, RejectsASnapshotWithANumberAboveItsBound) {
  EXPECT_EQ(fault_of_daily(6, kMaxRules + 1), "is damaged: it has too many rules");
  EXPECT_EQ(fault_of_daily(7, kLongestRuleName + 1), "is damaged: it has too many letters in a name");
  EXPECT_EQ(fault_of_daily(9, kMostLimiters + 1), "is damaged: it has too many limiters of a rule");
  EXPECT_EQ(fault_of_daily(10, kMostVariants + 1), "is damaged: it has too many variants of a rule");
  EXPECT_EQ(fault_of_daily(14, 1), "is damaged: it has too many limiters of a variant");
  EXPECT_EQ(fault_of_daily(15, kMostSharedCells + 1), "is damaged: it has too many shared cells");
  auto words = of_log({{kMark, 1}});
  words.at(kEntries) = SlidingLog::kMostExact + 1;
  EXPECT_EQ(fault_of(words, exact_), "is damaged: it has too many entries in a log");
}

TEST_F(SnapshotDamage, RejectsASnapshotWithImpossiblePenalties) {
  const auto fault_of_penalty = [&](std::uint64_t number, std::uint64_t end, std::uint64_t violations) {
    auto words = head();
    words[1] = kFewRulesVersion;
    words.insert(words.end(), {number, 3, 4, kMark, end, violations});
    for (std::uint64_t i = 0; i < violations; ++i) words.push_back(kMark);
    words.push_back(0);  // no penalty has begun
    return fault_of(words, daily_, 0);
  };
  EXPECT_EQ(fault_of_penalty(1, kMark, kMostViolations), "");
  EXPECT_EQ(fault_of_penalty(1, kMark, kMostViolations + 1),
            "is damaged: it has too many times of a penalty");
  EXPECT_EQ(fault_of_penalty(1, kLatest + 1, 1), "is damaged: a penalty has an impossible time");
  EXPECT_EQ(fault_of_penalty(kMostPenalties + 1, kMark, 1), "is damaged: it has too many penalties");
}

TEST_F(SnapshotDamage, RejectsASnapshotWithAWrongNumberOfKeys) {
  const auto wrong = "is damaged: its number of keys is wrong";
  EXPECT_EQ(fault_of(of(daily_), daily_, 0), wrong);
  EXPECT_EQ(fault_of(of(daily_), daily_, 2), wrong);
  EXPECT_EQ(fault_of(head(), daily_, 1), wrong);
  EXPECT_EQ(fault_of(head(), daily_, 0), "");
}

// A log stores an entry in 64 bits: its cost (14 bits, or 32 with buckets) and the low bits of its mark
// (limit/log/log.hpp). So the reader must reject a cost that needs more bits, and a mark that is too far from
// the newest one.
TEST_F(SnapshotDamage, RejectsASnapshotWithImpossibleSlidingLogs) {
  const auto wrong = "is damaged: a log is out of order";
  EXPECT_EQ(fault_of(of_log({}), exact_), "is damaged: a log is empty");
  EXPECT_EQ(fault_of(of_log({{kMark, 1}, {kMark + 1, 1}}), exact_), "");
  EXPECT_EQ(fault_of(of_log({{kMark, 1}, {kMark, 1}}), exact_), wrong);
  EXPECT_EQ(fault_of(of_log({{kMark, 1}, {kMark - 1, 1}}), exact_), wrong);
  EXPECT_EQ(fault_of(of_log({{kMark, 0}}), exact_), wrong);
  for (const auto& [limiter, bits] : {std::pair(&exact_, 14U), std::pair(&buckets_, 32U)}) {
    const Cost most = (Cost{1} << bits) - 1;
    const auto youngest = std::uint64_t{1} << (64 - bits);
    EXPECT_EQ(fault_of(of_log({{kMark, most}}), *limiter), "");
    EXPECT_EQ(fault_of(of_log({{kMark, most + 1}}), *limiter), wrong);
    EXPECT_EQ(fault_of(of_log({{1, 1}, {youngest, 1}}), *limiter), "");
    EXPECT_EQ(fault_of(of_log({{1, 1}, {2, 1}, {youngest + 1, 1}}), *limiter), wrong);
  }
  const Cost half = SlidingLog::kMostTotal / 2;
  EXPECT_EQ(fault_of(of_log({{1, half}, {2, half + 1}}), buckets_), "");
  EXPECT_EQ(fault_of(of_log({{1, half}, {2, half + 2}}), buckets_), wrong);
}

}  // namespace
}  // namespace weir::limit
