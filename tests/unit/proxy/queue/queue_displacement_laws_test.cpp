// Tests which waiting requests new requests displace from a full queue, with a real leaky bucket. The laws
// below hold for any traffic.
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
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using std::chrono::seconds;
using Eviction = Queue::Eviction;

constexpr Queue::Worker kTrafficWorkers = 2;

// Random traffic: requests arrive, join at once, and sometimes leave. The laws:
//
//  1. At most `queue` requests wait.
//  2. No request is refused while a request of a worse priority waits, or while a departure is surplus.
//  3. No request is refused while another client of its priority has at least two waiting requests more than
//     the request's own client.
//  4. A displaced request has the worst priority of all waiting requests. No client of that priority has more
//     waiting requests than the client of the displaced request.
//  5. A request displaces a request of the same priority only if the displaced request's client then still
//     has at least as many waiting requests as the new request's client.
//  6. The displaced request is the one that would have departed last, by TurnOracle.
//  7. No departure is taken twice. Departures are at least period/count of the bucket's rate apart.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed)
      : random_(seed),
        rate_{1, seconds(1 + below(5))},
        places_(1 + below(8)),
        limiter_(limit::LeakyBucket::make(rate_, places_, base::kForever).value()) {}
  ~Traffic() {
    for (auto& ticket : tickets_)
      if (ticket->waits()) queue_.leave(*ticket);
  }

  void run() {
    for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
      const auto choice = below(8);
      if (choice < 5) come();
      if (choice == 5) leave();
      if (choice > 5) pass();
      ASSERT_LE(queue_.size(), places_);
    }
  }
  [[nodiscard]] std::size_t displaced() const { return displaced_; }
  [[nodiscard]] std::size_t levelled() const { return levelled_; }
  [[nodiscard]] std::size_t refused() const { return refused_; }
  [[nodiscard]] std::size_t departed() const { return departed_; }

 private:
  using Places = std::map<std::pair<policy::Priority, limit::Key>, int>;
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void come() {
    const auto priority = static_cast<policy::Priority>(below(4));
    const limit::Key client{below(3), 0};
    const Newcomer newcomer{.lane = kLane, .client = client, .priority = priority, .cost = 1, .most = 1'000};
    const auto step = limit::step(limiter_, cell_, now_, 1);
    if (!step.outcome.allowed && !queue_.has_departure_for(newcomer)) return note_refused(newcomer);
    Departure departure{
        .at = now_ + step.outcome.delay, .promised = now_ + step.outcome.delay, .charge = charge()};
    if (step.outcome.allowed)
      cell_ = step.next;
    else
      departure = displace(newcomer);
    if (step.outcome.allowed && step.outcome.delay.count() == 0) return note_departure(now_);
    tickets_.push_back(std::make_unique<Queue::Ticket>(below(kTrafficWorkers), client, priority));
    queue_.join(*tickets_.back(), departure);
    turns_.join(tickets_.back().get());
    take_due();
  }

  Departure displace(const Newcomer& newcomer) {
    const auto before = places_by_client();
    const auto had_surplus = queue_.surplus(kLane) != nullptr;
    EXPECT_TRUE(had_surplus || queue_.may_yield_to(newcomer.priority));
    const auto [departure, displaced] = queue_.displace(newcomer);
    const Queue::Ticket* loser = nullptr;
    for (Queue::Worker worker = 0; worker < kTrafficWorkers; ++worker)
      while (const auto* told = queue_.take_evicted(worker)) {
        EXPECT_EQ(loser, nullptr) << "more than one request was displaced";
        EXPECT_EQ(told->worker(), worker);
        loser = told;
      }
    EXPECT_EQ(loser == nullptr, had_surplus);
    EXPECT_EQ(loser != nullptr, displaced);
    if (loser != nullptr) check_loser(*loser, newcomer, before);
    return departure;
  }

  void check_loser(const Queue::Ticket& loser, const Newcomer& newcomer, const Places& before) {
    EXPECT_EQ(&loser, turns_.last()) << "another request would have departed later";
    turns_.leave(&loser);
    const auto own = before.at({loser.priority(), loser.client()});
    for (const auto& [who, places] : before) {
      EXPECT_LE(who.first, loser.priority()) << "a request with a worse priority was not displaced";
      EXPECT_TRUE(who.first < loser.priority() || places <= own)
          << "a client with more places was not chosen";
    }
    const bool levelled = loser.priority() == newcomer.priority;
    EXPECT_EQ(loser.eviction(), levelled ? Eviction::Levelled : Eviction::Displaced);
    ++(levelled ? levelled_ : displaced_);
    if (!levelled) return;
    const auto rival = before.find({newcomer.priority, newcomer.client});
    EXPECT_GE(own - 1, (rival != before.end() ? rival->second : 0) + 1);
  }

  void note_refused(const Newcomer& newcomer) {
    ++refused_;
    const auto all = places_by_client();
    const auto own = all.find({newcomer.priority, newcomer.client});
    const auto fair = (own != all.end() ? own->second : 0) + 1;
    for (const auto& [who, places] : all) {
      ASSERT_LE(who.first, newcomer.priority) << "refused although a request with a worse priority waits";
      ASSERT_TRUE(who.first < newcomer.priority || places <= fair)
          << "refused although a client has more places";
    }
    ASSERT_EQ(queue_.surplus(kLane), nullptr) << "refused although a departure is unused";
  }

  void leave() {
    if (tickets_.empty()) return;
    auto& ticket = *tickets_[below(tickets_.size())];
    if (!ticket.waits()) return;
    queue_.leave(ticket);
    turns_.leave(&ticket);
    while (const auto* surplus = queue_.surplus(kLane)) {
      const auto back = limit::refund(limiter_, cell_, surplus->promised, 1);
      if (back == cell_) break;
      cell_ = back;
      queue_.drop_surplus(kLane);
    }
  }

  void pass() {
    now_ += base::Duration(below(3 * static_cast<std::uint64_t>(rate_.period.count())));
    take_due();
  }

  void take_due() {
    for (bool any = true; any;) {
      any = false;
      for (Queue::Worker worker = 0; worker < kTrafficWorkers; ++worker)
        while (const auto* ticket = queue_.take_due(worker, now_)) {
          EXPECT_EQ(ticket, turns_.depart());
          note_departure(ticket->departure().at);
          any = true;
        }
    }
  }

  void note_departure(base::TimePoint departure) {
    const auto next = handoff_sender_.lower_bound(departure);
    ASSERT_TRUE(next == handoff_sender_.end() || *next - departure >= rate_.period)
        << "departures are too close, or one was used twice";
    ASSERT_TRUE(next == handoff_sender_.begin() || departure - *std::prev(next) >= rate_.period)
        << "departures are too close";
    handoff_sender_.insert(departure);
    ++departed_;
  }

  [[nodiscard]] Places places_by_client() const {
    Places places;
    for (const auto& ticket : tickets_)
      if (ticket->waits()) ++places[{ticket->priority(), ticket->client()}];
    return places;
  }
  [[nodiscard]] limit::Charge charge() const { return {.key = kLane, .limiter = &limiter_}; }

  std::mt19937_64 random_;
  limit::Rate rate_;
  const std::uint64_t places_;
  limit::Limiter limiter_;
  limit::Cell cell_;
  base::TimePoint now_{std::chrono::hours(500'000)};
  std::vector<std::unique_ptr<Queue::Ticket>> tickets_;
  std::set<base::TimePoint> handoff_sender_;
  std::size_t displaced_ = 0, levelled_ = 0, refused_ = 0, departed_ = 0;
  TurnOracle turns_;
  Queue queue_{kTrafficWorkers};
};

TEST(DisplacementLaws, DisplacementIsFairByPriorityAndClientForRandomTraffic) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::size_t displaced = 0, levelled = 0, refused = 0, departed = 0;
  for (std::uint64_t i = 0; i < 10'000 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("case " + std::to_string(seed + i));
    Traffic traffic(seed + i);
    traffic.run();
    displaced += traffic.displaced(), levelled += traffic.levelled();
    refused += traffic.refused(), departed += traffic.departed();
  }
  std::cout << displaced << " displaced, " << levelled << " levelled, " << refused << " refused, " << departed
            << " departed\n";
  EXPECT_GT(std::min({displaced, levelled, refused, departed}), 10'000U);
}

}  // namespace
}  // namespace weir::proxy
