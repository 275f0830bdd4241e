// The queue with a real leaky bucket. Several workers get departures from the limiter, and their requests
// join later in any order. Some requests leave, and another rule delays some requests. The laws:
//
//  1. No request departs before the departure that it takes, or before another rule permits it.
//  2. No departure is taken twice.
//  3. Departures of a lane are at least period/count of the bucket's rate apart. If requests join as soon as
//     they have a departure, the instants at which requests depart are at least as far apart.
//  4. No departure stays unused while a waiting request may take it. If requests join at once, the
//     departures are then exactly period/count apart.
//  5. Requests depart in the order of TurnOracle, and each worker takes only its own tickets (waiting
//     requests).
#include "unit/proxy/queue/lanes.hpp"
#include "unit/proxy/queue/turn_oracle.hpp"

#include "weir/limit/limiter.hpp"
#include "weir/proxy/queue.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

constexpr Queue::Worker kSimulatedWorkers = 3;

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : random_(seed),
        rate_{1 + below(50), base::Duration(1 + below(2'000'000))},
        limiter_(limit::LeakyBucket::make(rate_, 1'000'000, base::kForever).value()),
        eager_(below(2) == 0) {}
  // How many events of each kind occurred. The test checks that every kind occurred, so that all laws were
  // tested.
  std::size_t departed = 0, surplus = 0, passed_on = 0, unused = 0;

  ~Simulation() {
    for (auto& ticket : tickets_)
      if (ticket->waits()) queue_.leave(*ticket);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      const auto most = static_cast<std::uint64_t>(interval().count()) + 2;
      pass(base::Duration(below(3) == 0 ? below(below(10) == 0 ? 10 * most : most) : 0));
      switch (below(5)) {
        case 0:
        case 1:
          promise();
          if (eager_) join_one();
          break;
        case 2:
          join_one();
          break;
        case 3:
          leave_one();
          break;
        default:
          break;
      }
    }
    while (!promised_.empty()) join_one();
    pass(std::chrono::hours(1'000));
    EXPECT_EQ(queue_.size(), 0U) << "a request waits forever";
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  // A worker gets a departure from the limiter. The request joins later, possibly after requests of other
  // workers.
  void promise() {
    const auto step = limit::step(limiter_, cell_, now_, 1);
    ASSERT_TRUE(step.outcome.allowed);
    cell_ = step.next;
    const auto at = now_ + step.outcome.delay;
    if (step.outcome.delay.count() == 0) return note_departure(at);
    promised_.push_back({.at = at, .promised = at, .charge = {.key = kLane, .limiter = &limiter_}});
  }

  void join_one() {
    if (promised_.empty()) return;
    const auto chosen = promised_.begin() + static_cast<std::ptrdiff_t>(below(promised_.size()));
    const auto departure = *chosen;
    promised_.erase(chosen);
    const std::uint64_t client = below(4);
    const auto priority = static_cast<policy::Priority>(below(3));
    tickets_.push_back(std::make_unique<Queue::Ticket>(below(kSimulatedWorkers), limit::Key{client, 0},
                                                       priority, not_before(departure.at)));
    in_lane_.insert(departure.at);
    queue_.join(*tickets_.back(), departure);
    oracle_.join(tickets_.back().get());
    settle();
  }

  // Returns a random time until which another rule delays the request, or the epoch if no other rule delays
  // it. `promised`: the request's departure. The result is not later than that, because a request waits in
  // the queue of the rule that delays it most.
  base::TimePoint not_before(base::TimePoint promised) {
    if (below(3) != 0 || promised <= now_) return {};
    return promised - base::Duration(below(static_cast<std::uint64_t>((promised - now_).count())));
  }

  void leave_one() {
    if (tickets_.empty()) return;
    auto& ticket = *tickets_[below(tickets_.size())];
    if (!ticket.waits()) return;
    if (below(4) == 0) return depart_and_pass_on();
    queue_.leave(ticket);
    oracle_.leave(&ticket);
    settle();
  }

  // Waits until the next departure is due. The request that takes the departure does not use it, but passes
  // it on to another request.
  void depart_and_pass_on() {
    const auto due = next_due();
    if (due != base::TimePoint::max()) pass(std::max(due - now_, base::Duration(0)), true);
  }

  void settle() {
    while (const auto* last = queue_.surplus(kLane)) {
      const auto back = limit::refund(limiter_, cell_, last->promised, 1);
      if (back == cell_) {
        ++surplus;
        break;
      }
      cell_ = back;
      in_lane_.erase(in_lane_.find(last->at));
      queue_.drop_surplus(kLane);
    }
    if (!oracle_.may_depart(latest_)) waited_on_ = false;
    depart_due(false);
  }

  base::TimePoint next_due() const {
    auto due = base::TimePoint::max();
    for (Queue::Worker worker = 0; worker < kSimulatedWorkers; ++worker)
      due = std::min(due, queue_.next_due(worker));
    return due;
  }

  void pass(base::Duration span, bool client_left = false) {
    const auto until = now_ + span;
    while (next_due() <= until) {
      now_ = std::max(now_, next_due());
      depart_due(client_left);
      client_left = false;
    }
    now_ = until;
  }

  void depart_due(bool client_left) {
    while (next_due() <= now_) {
      const auto worker = below(kSimulatedWorkers);  // the timers of the workers fire in any order
      const auto waited = queue_.size();
      const auto* ticket = queue_.take_due(worker, now_);
      if (ticket == nullptr) {
        ASSERT_EQ(queue_.size(), waited);
        ASSERT_GT(queue_.next_due(worker), now_);
        continue;
      }
      ASSERT_EQ(ticket, oracle_.depart(ticket->departure().at));
      ASSERT_EQ(ticket->worker(), worker) << "taken by another worker than the request's";
      ASSERT_LE(ticket->departure().at, now_) << "early";
      ASSERT_LE(ticket->not_before(), now_) << "earlier than another rule permits";
      const auto taken = in_lane_.find(ticket->departure().at);
      ASSERT_NE(taken, in_lane_.end()) << "the departure was used twice, or never promised";
      in_lane_.erase(taken);
      if (client_left) {
        client_left = false;
        ++passed_on;
        in_lane_.insert(ticket->departure().at);
        queue_.offer(ticket->departure(), worker);
        settle();
      } else {
        ++departed;
        note_departure(eager_ ? now_ : ticket->departure().at);
        const auto gap = ticket->departure().at - latest_;
        ASSERT_TRUE(!eager_ || !waited_on_ || gap <= interval() + kRounding) << "a gap of " << gap.count();
        latest_ = ticket->departure().at;
        waited_on_ = oracle_.may_depart(latest_);
      }
    }
    const auto later = in_lane_.upper_bound(now_);
    for (auto at = in_lane_.begin(); at != later; ++at, ++unused)
      ASSERT_FALSE(oracle_.may_depart(*at)) << "a departure passed unused while a request may take it";
    in_lane_.erase(in_lane_.begin(), later);
  }

  // The limiter rounds instants up, so an interval of period/count may differ by less than a microsecond.
  static constexpr base::Duration kRounding{1};
  [[nodiscard]] base::Duration interval() const {
    return base::Duration(rate_.period.count() / static_cast<std::int64_t>(rate_.count));
  }

  void note_departure(base::TimePoint at) {
    const auto position = std::lower_bound(sorted_.begin(), sorted_.end(), at);
    ASSERT_TRUE(position == sorted_.end() || *position - at >= interval()) << "departures are too close";
    ASSERT_TRUE(position == sorted_.begin() || at - *std::prev(position) >= interval())
        << "departures are too close";
    sorted_.insert(position, at);
  }

  std::mt19937_64 random_;
  limit::Rate rate_;
  limit::Limiter limiter_;
  const bool eager_;  // true: each request joins the queue as soon as it has a departure
  limit::Cell cell_;
  base::TimePoint now_{std::chrono::hours(500'000)};
  std::vector<Departure> promised_;  // departures whose requests have not joined yet
  // Departures that came with requests, until a request takes them, the limiter takes them back, or they
  // pass.
  std::multiset<base::TimePoint> in_lane_{};
  std::vector<std::unique_ptr<Queue::Ticket>> tickets_;
  base::TimePoint latest_;
  // true: ever since the latest departure, a request waited that could have taken this departure instead
  bool waited_on_ = false;
  std::vector<base::TimePoint> sorted_;
  TurnOracle oracle_;
  Queue queue_{kSimulatedWorkers};
};

TEST(QueueLaws, DeparturesAreSpacedOrderedAndUsedOnceForRandomTraffic) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::size_t departed = 0, surplus = 0, passed_on = 0, unused = 0;
  for (std::uint64_t i = 0; i < 10'000 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(seed + i));
    Simulation simulation(seed + i);
    simulation.run(100);
    departed += simulation.departed, surplus += simulation.surplus, passed_on += simulation.passed_on;
    unused += simulation.unused;
  }
  std::cout << departed << " departed, " << surplus << " times a surplus stayed, " << passed_on
            << " departures were passed on, " << unused << " passed unused\n";
  EXPECT_GT(std::min({departed, surplus, passed_on, unused}), 1'000U);
}

TEST(QueueLaws, ClientsDepartAtTheirPredictedTurn) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1'000; ++i) {
    Queue queue(1);
    std::vector<std::unique_ptr<Queue::Ticket>> tickets;
    for (int n = 0; n < 30; ++n) {
      const base::TimePoint at{std::chrono::seconds(n)};
      const auto priority = static_cast<policy::Priority>(random() % policy::kPriorities);
      tickets.push_back(std::make_unique<Queue::Ticket>(0, limit::Key{random() % 8, 0}, priority));
      queue.join(*tickets.back(), {.at = at, .promised = at, .charge = {.key = kLane, .limiter = nullptr}});
    }
    std::map<limit::Key, base::TimePoint> predicted, departed;
    for (const auto& ticket : tickets)
      predicted[ticket->client()] = queue.next_departure(kLane, ticket->client());
    while (const auto* ticket = queue.take_due(0, base::TimePoint::max()))
      departed.emplace(ticket->client(), ticket->departure().at);
    ASSERT_EQ(predicted, departed);
  }
}

}  // namespace
}  // namespace weir::proxy
