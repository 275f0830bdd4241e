// Tests what happens to the charges of a request when the request leaves the queue. The tests need no
// sockets: they use one worker's event loop and real limiters. The intervals of these limiters are too long
// to wait for.
#include "proxy/admission/admission_controller.hpp"

#include "unit/net/sockets.hpp"
#include "unit/proxy/lone_worker.hpp"

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using policy::Verdict;
using std::chrono::hours;

limit::Limiter queue_of(limit::Rate rate, std::uint64_t places) {
  return limit::LeakyBucket::make(rate, places, base::kForever).value();
}

policy::Rule rule_of(const char* name, limit::RuleIndex index, std::string_view key,
                     const limit::Limiter& limiter) {
  policy::Rule rule{.name = name, .index = index, .rule_number = index, .limiter = limiter};
  if (!key.empty()) rule.key = {*policy::parse_key_part(key)};
  return rule;
}

class AdmissionControllerTest : public ::testing::Test, protected LoneWorker {
 protected:
  // The rule "queue" lets one request an hour depart, lets two wait, and is shared by all clients. The rule
  // "two" admits two requests a day for each API key. The rule "slow" lets one request of the tier "slow"
  // depart in ten hours.
  AdmissionControllerTest() : LoneWorker({}) {
    config.rules = {
        rule_of("queue", 0, "", queue_of({1, hours(1)}, 2)),
        rule_of("two", 1, "api_key", limit::TokenBucket::make({2, hours(24)}, 2).value()),
        rule_of("slow", 2, "", queue_of({1, hours(10)}, 10)),
    };
    config.rules[2].match.tiers = {"slow"};
  }

  // One request: its AdmissionController, and its wait in the queue.
  struct Asker {
    explicit Asker(Worker& worker) : buffers(worker), admission(worker, worker.config(), buffers) {}
    ExchangeBuffers buffers;
    AdmissionController admission;
    AdmissionResult result;
    std::unique_ptr<Shaper::Ticket> ticket;
    Shaper::QueueResult turn{};
    bool done = false;
  };
  Asker& ask(std::string_view api_key, base::Duration after = {}, std::string_view tier = {}) {
    askers.push_back(std::make_unique<Asker>(worker));
    auto& asker = *askers.back();
    asker.buffers.request.head = &head;
    asker.buffers.rules = config.rules;
    asker.buffers.request.client.api_key = api_key;
    asker.buffers.request.client.key_vouched = true;
    asker.buffers.request.client.tier = tier;
    EXPECT_TRUE(asker.admission.decide_here(began + after, policy::kDefaultPriority, asker.result));
    return asker;
  }
  // Calls ask(), then waits for the departure.
  Asker& join(std::string_view api_key, base::Duration after = {}, std::string_view tier = {}) {
    auto& asker = ask(api_key, after, tier);
    EXPECT_EQ(asker.result.decision.verdict, Verdict::Delay);
    net::spawn(context.get_executor(), wait(asker), [](const std::exception_ptr&) {});
    turn([] { return false; }, 1);
    return asker;
  }
  net::Task<void> wait(Asker& asker) {
    const auto delayed = asker.admission.delayed();
    asker.ticket = std::make_unique<Shaper::Ticket>(
        worker.shaper, policy::name_client(asker.buffers.request, config.names.table),
        policy::kDefaultPriority, delayed.not_before);
    asker.admission.hand_to_queue(delayed.departure);
    asker.turn =
        co_await worker.shaper.wait(*asker.ticket, delayed.departure, delayed.rule->queue_per_client);
    asker.done = true;
  }
  void leave(Asker& asker) {
    asker.ticket->leave();
    turn([&] { return asker.done; });
  }
  template <class Done>
  void turn(Done done, int seconds = 20) {
    if (seconds == 1) {
      context.restart();
      context.poll();
      return;
    }
    EXPECT_TRUE(net::turn_until(context, done, std::chrono::seconds(seconds)));
  }
  ~AdmissionControllerTest() override {
    for (auto& asker : askers)
      if (asker->ticket && !asker->done) leave(*asker);
  }
  // Returns how many more requests of this API key the rule "two" admits.
  limit::Cost left(std::string_view api_key) {
    auto request = askers.front()->buffers.request;
    request.client.api_key = api_key;
    const auto applied = policy::applied_limiter(config.rules[1], request);
    const auto key = policy::name_key(config.rules[1], applied, request, config.names.table);
    const auto now = began;
    return table.current_outcome({.key = *key, .limiter = applied.limiter, .cost = 1, .rule = 1}, now)
        .remaining;
  }

  // Makes the rule "two" a shadow rule that would refuse all requests but the first. Its violation number
  // `after` begins a penalty.
  void watch(std::uint32_t after) {
    config.rules[1] = rule_of("watch", 1, "", queue_of({1, hours(24)}, 0));
    config.rules[1].mode = policy::Mode::Shadow;
    config.rules[1].penalty =
        limit::Penalty{.after = after, .first = hours(1), .grows = 1, .most = hours(1), .forget = hours(24)};
  }
  std::size_t violations() const {
    std::size_t found = 0;
    for (const auto& saved : table.penalties(began)) found += saved.state.violations.size();
    return found;
  }

  http::RequestHead head;
  base::TimePoint began = clock.now();
  std::vector<std::unique_ptr<Asker>> askers;
};

TEST_F(AdmissionControllerTest, RefundsTheChargesOfAnAbandonedRequest) {
  auto& first = ask("a");
  EXPECT_EQ(first.result.decision.verdict, Verdict::Forward);
  EXPECT_EQ(left("a"), 1U);
  first.admission.abandon();
  EXPECT_EQ(left("a"), 2U);
  auto& second = ask("a");
  EXPECT_EQ(second.result.decision.verdict, Verdict::Forward) << "the departure was returned as well";
  second.admission.keep();
  second.admission.abandon();
  EXPECT_EQ(left("a"), 1U);
}

TEST_F(AdmissionControllerTest, RefusedRequestIsCountedOnlyForTheRulesThatRefuse) {
  using observe::RuleOutcome;
  (void)ask("a");
  (void)ask("a");
  EXPECT_EQ(ask("a").result.decision.verdict, Verdict::Reject);
  const auto counted = [&](limit::RuleIndex rule, RuleOutcome outcome) {
    return counters.decisions(rule, outcome).value();
  };
  EXPECT_EQ(counted(1, RuleOutcome::Refused), 1U);
  EXPECT_EQ(counted(1, RuleOutcome::Admitted), 2U);
  EXPECT_EQ(counted(0, RuleOutcome::Admitted), 1U);
  EXPECT_EQ(counted(0, RuleOutcome::Delayed), 1U) << "the third request was queued without being charged";
}

TEST_F(AdmissionControllerTest, RefusalIsCountedForTheClientUnderItsKeyInTheRefusingRule) {
  auto& refused = *counters.refused_clients;
  const auto counts_of = [&](limit::RuleIndex rule) {
    observe::SpaceSaving counts(observe::RefusedClients::kCounters);
    refused.take(rule, counts);
    return counts;
  };
  refused.watch(std::array<limit::RuleIndex, 2>{0, 1});
  for (int i = 0; i < 4; ++i) (void)ask("a");
  (void)ask("b");
  const auto counts = counts_of(1);
  ASSERT_EQ(counts.counters().size(), 1U);
  EXPECT_EQ(counts.counters()[0].count, 2U) << "the rule admits two of the four requests";
  EXPECT_EQ(counts.counters()[0].client, *askers[3]->admission.key_in(&config.rules[1]));
  EXPECT_EQ(counts.counters()[0].text(), "api_key");
  EXPECT_EQ(counts_of(0).total(), 0U) << "the queue had places";
}

TEST_F(AdmissionControllerTest, DepartureThatTheQueueReturnedToTheLimiterIsNotReturnedAgain) {
  (void)ask("a");
  auto& waiting = join("a");
  leave(waiting);  // the shaper returns the departure to the limiter
  auto& other = join("b");
  waiting.admission.abandon();
  EXPECT_EQ(ask("c").admission.delayed().departure.at, other.admission.delayed().departure.at + hours(1))
      << "the departure of the other request was not promised again";
}

// The limiter takes back only the latest departure that it has promised. This test abandons `first` before
// `second`. So the departure of `first` stays in the queue until the departure of `second` is returned.
TEST_F(AdmissionControllerTest, AbandonedDepartureIsReturnedOnceAllLaterDeparturesAreReturned) {
  (void)ask("x");
  auto& first = ask("a");
  const auto soonest = first.admission.delayed().departure.at;
  auto& second = ask("b");
  EXPECT_EQ(second.admission.delayed().departure.at, soonest + hours(1));
  first.admission.abandon();
  second.admission.abandon();
  EXPECT_EQ(queue.queue.surplus(first.admission.delayed().departure.charge.key), nullptr)
      << "all departures were returned";
  EXPECT_EQ(ask("c").admission.delayed().departure.at, soonest);
}

TEST_F(AdmissionControllerTest, DepartureThatTheLimiterCannotTakeBackIsGivenToAWaitingRequest) {
  (void)ask("x");
  auto& refused = ask("a");
  const auto soonest = refused.admission.delayed().departure.at;
  auto& waiting = join("b");
  const auto lane = waiting.admission.delayed().departure.charge.key;
  refused.admission.abandon();
  EXPECT_EQ(queue.queue.next_departure(lane, waiting.ticket->client()), soonest);
  EXPECT_EQ(queue.queue.surplus(lane), nullptr) << "the last departure was returned";
}

// weir drops departures in the past. If weir gave them to other requests, several requests would depart at
// once.
TEST_F(AdmissionControllerTest, DepartureInThePastIsNotGivenToAnotherRequest) {
  began -= hours(2);
  (void)ask("x");
  auto& late = ask("a");
  began += hours(2);
  (void)ask("y");
  auto& waiting = join("b");
  late.admission.abandon();
  turn([] { return false; }, 1);
  EXPECT_FALSE(waiting.done);
}

TEST_F(AdmissionControllerTest, ClientThatLeavesStaysChargedIfItsRequestDisplacedAnotherRequest) {
  (void)ask("x");
  auto& greedy = join("a");
  auto& last = join("a");
  auto& newcomer = join("b");
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.turn.end, Shaper::End::Levelled);
  last.admission.refund();
  EXPECT_EQ(left("a"), 1U) << "the displaced request is refunded";
  leave(newcomer);
  newcomer.admission.refund_after_leaving();
  newcomer.admission.abandon();
  EXPECT_EQ(left("b"), 1U);
  leave(greedy);
  greedy.admission.refund_after_leaving();
  EXPECT_EQ(left("a"), 2U) << "the request had displaced no other request";
}

// A request that a shadow rule would refuse counts as one violation, whether or not the request then
// displaces another request.
TEST_F(AdmissionControllerTest, RequestForAFullQueueCountsAsOneViolationOfAShadowRule) {
  watch(100);
  (void)ask("x");
  (void)join("a");
  (void)join("a");
  EXPECT_EQ(violations(), 2U);
  EXPECT_EQ(ask("a").result.decision.verdict, Verdict::Reject)
      << "a request may not displace a request of its own client";
  EXPECT_EQ(violations(), 3U);
  (void)join("b");
  EXPECT_EQ(violations(), 4U);
  EXPECT_EQ(ask("c").result.decision.verdict, Verdict::Reject) << "each client has one place";
  EXPECT_EQ(violations(), 5U);
}

TEST_F(AdmissionControllerTest, PenaltyOfAShadowRuleBeginsEvenIfTheRequestDisplacesAnotherRequest) {
  watch(3);
  (void)ask("x");
  (void)join("a");
  (void)join("a");
  EXPECT_EQ(counters.penalties(1).value(), 0U);
  (void)join("b");
  EXPECT_EQ(counters.penalties(1).value(), 1U);
}

// The request of "b" displaces a request of "a" and takes its departure in the rule "queue". But the rule
// "slow" delays "b" longer. Then "c" gets a later departure in "queue". When "b" leaves, the limiter cannot
// take back the departure of "b", because it is not the latest one. So "c" must get it.
TEST_F(AdmissionControllerTest, UnusedDepartureOfADisplacedRequestGoesToAWaitingRequestOfItsQueue) {
  (void)ask("x", {}, "slow");
  (void)join("a");
  auto& last = join("a");
  const auto lane = last.admission.delayed().departure.charge.key;
  const auto won = last.admission.delayed().departure.at;
  auto& newcomer = join("b", {}, "slow");
  EXPECT_EQ(newcomer.admission.delayed().rule, &config.rules[2]);
  EXPECT_EQ(newcomer.admission.delayed().not_before, won);
  auto& later = join("c", hours(1));
  EXPECT_EQ(queue.queue.next_departure(lane, later.ticket->client()), won + hours(1));
  leave(newcomer);
  newcomer.admission.refund();
  EXPECT_EQ(queue.queue.next_departure(lane, later.ticket->client()), won);
  EXPECT_EQ(queue.queue.surplus(lane), nullptr) << "the last departure was returned";
}

}  // namespace
}  // namespace weir::proxy
