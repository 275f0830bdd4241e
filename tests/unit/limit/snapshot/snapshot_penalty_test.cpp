// Tests that a snapshot keeps violations and penalties.
#include "unit/limit/snapshot/snapshots.hpp"
#include "unit/limit/traffic.hpp"

#include "weir/limit/snapshot.hpp"

#include <gmock/gmock.h>

namespace weir::limit {
namespace {

class SnapshotOfPenalties : public testing::Test {
 protected:
  Outcome ask(KeyTable& table, TimePoint now, std::uint64_t client = 1) {
    Charge line{key_of(client), &one_};
    line.penalty = &twice_;
    Outcome outcome;
    (void)table.charge({&line, 1}, now, {&outcome, 1});
    return outcome;
  }
  std::uint64_t version_of(const std::string& bytes) {
    std::uint64_t version = 0;
    std::memcpy(&version, bytes.data() + sizeof version, sizeof version);
    return version;
  }

  const Limiter one_ = token_bucket("1/h", 1);
  const std::vector<SavedRule> rules_{rule_of("logins", one_)};
  const Penalty twice_{.after = 2, .first = 2h, .grows = 2, .most = 24h, .forget = 24h};
  KeyTable table_{1'000}, again_{1'000};
};

TEST_F(SnapshotOfPenalties, RestoresPenaltiesAndViolations) {
  for (int i = 0; i < 3; ++i) (void)ask(table_, kStart, 1);
  for (int i = 0; i < 2; ++i) (void)ask(table_, kStart, 2);
  const auto bytes = written(table_, rules_, kStart);
  ASSERT_TRUE(check_snapshot(source_of(bytes), rules_));
  const auto restored = restore_snapshot(source_of(bytes), rules_, {kStart + 90min}, again_);
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->left_out, 0);
  EXPECT_THAT(again_.penalties(kStart), testing::UnorderedElementsAreArray(table_.penalties(kStart)));
  EXPECT_EQ(ask(again_, kStart + 90min, 1).penalty_left, 30min);
  EXPECT_TRUE(ask(again_, kStart + 2h, 2).allowed);
  EXPECT_TRUE(ask(again_, kStart + 2h, 2).penalty_begins) << "the violation before the restart counts";
}

TEST_F(SnapshotOfPenalties, ForgottenPenaltiesAreNotRestored) {
  for (int i = 0; i < 3; ++i) (void)ask(table_, kStart);
  const auto bytes = written(table_, rules_, kStart);
  ASSERT_TRUE(restore_snapshot(source_of(bytes), rules_, {kStart + 24h}, again_));
  EXPECT_EQ(again_.stats().penalty_keys, 0);
}

TEST_F(SnapshotOfPenalties, RestoredPenaltyKeepsItsLengthIfTheClockWasSetBack) {
  for (int i = 0; i < 3; ++i) (void)ask(table_, kStart);
  const auto bytes = written(table_, rules_, kStart);
  ASSERT_TRUE(restore_snapshot(source_of(bytes), rules_, {kStart - 5h, -5h}, again_));
  EXPECT_EQ(ask(again_, kStart - 5h).penalty_left, 2h);
}

TEST_F(SnapshotOfPenalties, SnapshotWithoutPenaltiesCanBeReadByAVersionThatHasNoPenalties) {
  (void)ask(table_, kStart);
  EXPECT_EQ(version_of(written(table_, rules_, kStart)), 5);
  (void)ask(table_, kStart);
  EXPECT_EQ(version_of(written(table_, rules_, kStart)), 6);
}

TEST_F(SnapshotOfPenalties, RejectsASnapshotWithAnyChangedOrMissingByte) {
  for (int i = 0; i < 3; ++i) (void)ask(table_, kStart);
  const auto bytes = written(table_, rules_, kStart);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_FALSE(check_snapshot(source_of(damaged), rules_)) << at;
    EXPECT_FALSE(check_snapshot(source_of(bytes.substr(0, at)), rules_)) << at;
  }
}

}  // namespace
}  // namespace weir::limit
