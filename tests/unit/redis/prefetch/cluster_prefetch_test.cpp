// Tests stores that prefetch units, on a real Redis Cluster. One node makes some charges of a request; the
// other node refuses the other charges, or does not answer.
#include "unit/redis/cluster/two_masters.hpp"
#include "unit/redis/store/store_fixture.hpp"

#include "weir/redis/shared_grants.hpp"

#include <memory>
#include <vector>

namespace weir::redis {
namespace {

constexpr limit::Cost kBurst = 10'000;
constexpr limit::Cost kDrawn = 100;

class ClusterPrefetch : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { cluster_.reset(); }

  // Charges both buckets before each test, so that their next time slots begin later than any test ends.
  void SetUp() override {
    // Starts the cluster here and not in SetUpTestSuite(): after a failure there, gtest would count the tests
    // as skipped.
    if (!cluster_) cluster_ = std::make_unique<TwoMasters>();
    cluster_->empty();
    Worker other(cluster_->settings(1s));
    ASSERT_TRUE(other.turn_until_up());
    for (const auto& line : {bucket(0), bucket(1)}) {
      auto drawn = line;
      drawn.cost = kDrawn;
      drawn.lease = 0;
      ASSERT_TRUE(other.charge({drawn}).outcomes[0].allowed);
    }
    for (const auto& line : {refusing(0), refusing(1)}) ASSERT_TRUE(other.charge({line}).outcomes[0].allowed);
  }

  std::unique_ptr<Worker> weir(base::Duration timeout = 1s) {
    auto worker = std::make_unique<Worker>(cluster_->settings(timeout), Worker::quick(), nullptr, &units_);
    EXPECT_TRUE(worker->turn_until_up());
    return worker;
  }
  // Returns a charge of a rule with `lease`, whose key is on the node.
  limit::Charge bucket(std::size_t node) const {
    return {.key = TwoMasters::key_at(node, 1), .limiter = &bucket_, .lease = 1000};
  }
  // Returns a charge that Redis always admits. Its key is in the same cluster slot as the key of
  // bucket(node).
  limit::Charge admitting(std::size_t node) const {
    return {.key = limit::with_slot_hash({3, 3}, limit::slot_hash_of(bucket(node).key)), .limiter = &bucket_};
  }
  // Returns a charge that Redis refuses, because SetUp() has used up its limit of one unit. Its key is in
  // another cluster slot of the node.
  limit::Charge refusing(std::size_t node) const {
    return {.key = TwoMasters::key_at(node, 2), .limiter = &one_};
  }

  // Returns how many units of the key's burst are used in Redis. To find out, charges one more unit, which
  // the result does not include. With a gap (free time slots between charges), the result may be wrong by
  // one.
  limit::Cost charged(limit::Charge line) {
    line.lease = 1;
    Worker other(cluster_->settings(1s));
    EXPECT_TRUE(other.turn_until_up());
    return kBurst - 1 - other.charge({line}).outcomes.at(0).remaining;
  }
  // Waits until Redis has carried out all earlier commands of this worker.
  void await_nodes(Worker& worker) {
    for (std::size_t node = 0; node < 2; ++node)
      ASSERT_FALSE(worker.charge({{.key = TwoMasters::key_at(node, 9), .limiter = &bucket_}}).error);
  }

  static std::unique_ptr<TwoMasters> cluster_;
  SharedGrants units_{64, 10s};
  const limit::Limiter bucket_ = token_bucket({1, 24h}, kBurst);
  const limit::Limiter one_ = token_bucket({1, 24h}, 1);
};
std::unique_ptr<TwoMasters> ClusterPrefetch::cluster_;

// The grant (prefetched units) that Redis makes after the request has later time slots than the request. The
// refund of the request must not change the grant's slots.
TEST_F(ClusterPrefetch, RefundAfterARefusalByAnotherNodeLeavesALaterPrefetchUnchanged) {
  auto worker = weir();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker->charge({bucket(0)}).outcomes[0].allowed);
  EXPECT_FALSE(worker->charge({bucket(0), refusing(1)}).outcomes[1].allowed)
      << "the fourth request makes the key busy";
  ASSERT_TRUE(worker->turn_until([&] { return units_.stats().held() == 8; }));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(worker->charge({bucket(0)}).outcomes[0].prefetched);
  ASSERT_TRUE(worker->turn_until([&] { return units_.stats().held() != 0; }))
      << "weir prefetches the next grant";
  worker.reset();
  EXPECT_EQ(charged(bucket(0)), kDrawn + 3 + 8);
  EXPECT_EQ(units_.stats().lost, 0U);
}

TEST_F(ClusterPrefetch, RequestsStartedTogetherAreAllRefundedIfAnotherNodeRefusesThem) {
  auto worker = weir();
  const std::vector<limit::Charge> bill{bucket(0), refusing(1)};
  std::array<Answer, 3> answers;
  for (auto& answer : answers) worker->begin(bill, answer);
  ASSERT_TRUE(worker->turn_until([&] { return answers[0].done && answers[1].done && answers[2].done; }));
  for (const auto& answer : answers) EXPECT_FALSE(answer.outcomes[1].allowed);
  await_nodes(*worker);
  EXPECT_EQ(charged(bucket(0)), kDrawn);
  EXPECT_EQ(worker->store.stats().refunds, 3U);
  EXPECT_EQ(units_.stats().taken, 0U);
}

// A node that refuses one charge makes none of the request's charges. So weir has nothing to refund on that
// node.
TEST_F(ClusterPrefetch, NoRefundIsSentToANodeThatRefused) {
  auto worker = weir();
  auto refused = admitting(0);
  refused.cost = kBurst + 1;
  EXPECT_FALSE(worker->charge({bucket(0), refused, admitting(1)}).outcomes[1].allowed);
  await_nodes(*worker);
  EXPECT_EQ(units_.stats().taken, 0U);
  EXPECT_EQ(charged(bucket(0)), kDrawn);
  EXPECT_EQ(charged(admitting(1)), 0U);
}

// A refund needs the start of the charge's time slots. The charge's outcome must contain this start,
// whichever node decided the charge.
TEST_F(ClusterPrefetch, RefundIsSentToTheNodeThatCharged) {
  auto worker = weir();
  const std::vector<limit::Charge> bill{admitting(1), bucket(0), bucket(1), admitting(0)};
  auto more = bucket(1);
  more.cost = 7;
  more.lease = 0;
  ASSERT_TRUE(worker->charge({more}).outcomes[0].allowed);
  const auto answer = worker->charge(bill);
  ASSERT_FALSE(answer.error);
  for (std::size_t i = 0; i < bill.size(); ++i) worker->store.refund(bill[i], answer.now, answer.outcomes[i]);
  await_nodes(*worker);
  EXPECT_EQ(charged(bucket(0)), kDrawn);
  EXPECT_EQ(charged(bucket(1)), kDrawn + 7);
  EXPECT_EQ(charged(admitting(0)), 0U);
  EXPECT_EQ(charged(admitting(1)), 0U);
}

TEST_F(ClusterPrefetch, ChargeOnANodeThatRepliesIsDecidedEvenIfTheOtherNodeTimesOut) {
  auto worker = weir(100ms);
  const std::vector<limit::Charge> bill{admitting(1), bucket(0)};
  (*cluster_)[1].freeze();
  const auto answer = worker->charge(bill);
  (*cluster_)[1].thaw();
  EXPECT_EQ(answer.error, StoreError::Timeout);
  EXPECT_EQ(answer.unanswered, limit::ChargeSet{0b01});
  EXPECT_TRUE(answer.outcomes[1].allowed);
  EXPECT_EQ(answer.outcomes[1].remaining, kBurst - kDrawn - 1);
  worker->store.refund(bill[1], answer.now, answer.outcomes[1]);
  ASSERT_TRUE(worker->turn_until([&] { return worker->store.stats().refunds == 2; }))
      << "the late charge is refunded as well";
  await_nodes(*worker);
  EXPECT_EQ(charged(bucket(0)), kDrawn);
  EXPECT_EQ(charged(admitting(1)), 0U);
}

TEST_F(ClusterPrefetch, RequestIsRefusedIfOneNodeRefusesAndTheOtherTimesOut) {
  auto worker = weir(100ms);
  const std::vector<limit::Charge> bill{bucket(1), refusing(0), bucket(0), admitting(0)};
  (*cluster_)[1].freeze();
  const auto answer = worker->charge(bill);
  (*cluster_)[1].thaw();
  EXPECT_EQ(answer.error, StoreError::Timeout);
  EXPECT_EQ(answer.unanswered, limit::ChargeSet{0b0001});
  EXPECT_FALSE(answer.outcomes[1].allowed);
  EXPECT_GT(answer.outcomes[1].retry_after, 23h);
  // Waits for three refunds: bucket(0) and admitting(0) on node 0, and bucket(1), which node 1 has charged
  // late.
  ASSERT_TRUE(worker->turn_until([&] { return worker->store.stats().refunds == 3; }));
  await_nodes(*worker);
  EXPECT_EQ(charged(bucket(0)), kDrawn);
  EXPECT_EQ(charged(bucket(1)), kDrawn);
  EXPECT_EQ(charged(admitting(0)), 0U);
}

}  // namespace
}  // namespace weir::redis
