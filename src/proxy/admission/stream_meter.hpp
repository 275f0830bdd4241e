// StreamMeter estimates the cost of a streamed answer while weir forwards it, for rules with `stream` in
// their cost. It counts the events of the stream. If the charges do not cover the next event, the meter
// charges more before weir forwards the event.
//
// A charge is at most a quarter of the units charged so far, unless the event alone needs more. So a rule in
// Redis does not need a call for each event. If the budget does not admit the charge, the meter tries half of
// it, and so on. If the budget does not even admit the event, a rule with `cut` ends the stream before the
// event. Any other rule charges no more; the end of the stream settles the remaining cost as a debt.
//
// Part of Settlements, which settles the charges of the meter.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/event_stream.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/net/task.hpp"
#include "weir/policy/rule.hpp"
#include "weir/proxy/body_gate.hpp"
#include "weir/proxy/worker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

class StreamMeter final : public BodyGate {
 public:
  enum class Store : std::uint8_t { Table, Redis };

  // One time that the meter charged a rule beyond the reserve. `outcomes` and `costs` have one element for
  // each limiter of the rule. An elastic rule has two limiters, and one of them decides (limit/pair.hpp). If
  // the other limiter has no room, its cost is 0.
  struct Extra {
    base::TimePoint at;
    boost::container::static_vector<limit::Outcome, 2> outcomes;
    boost::container::static_vector<limit::Cost, 2> costs{};
  };
  enum class Mode : std::uint8_t {
    Charges,  // charges for an event if the earlier charges do not cover it
    Counts,   // only counts the events
    Cuts,     // the stream must end before the event that is held back
  };
  // The charges of one rule: one, or two if its limit is elastic.
  struct Metered {
    const policy::Rule* rule;
    Store store;
    boost::container::static_vector<limit::Charge, 2> charges;
    Mode mode;
    limit::Cost covered;          // units that are charged so far, with the reserve
    std::vector<Extra> extras{};  // at most kMostExtras; later charges are added to the last element
    // The next charge is at most this large, unless the event alone needs more. Twice the meter's last
    // charge; kMaxCost: no charge so far.
    limit::Cost next = limit::kMaxCost;
    base::TimePoint ask_again{};  // until this time, events pass uncharged, because Redis has not answered
  };
  static constexpr std::size_t kMostExtras = 64;
  static constexpr base::Duration kRedisPause = std::chrono::milliseconds{100};

  StreamMeter(Worker& worker, http::StreamFormat format) noexcept : worker_(worker), decoder_(format) {}

  // Adds a charge of a rule. Charges of the same rule and store must follow each other. A rule in shadow mode
  // must not change the stream, so it only counts.
  void add(const policy::Rule& rule, Store store, const limit::Charge& charge);

  // Counts the events, and charges for them in the key table. If an event needs a charge in Redis, or if the
  // stream must end, holds back the event and all later ones. Returns how many of the octets weir may
  // forward.
  [[nodiscard]] std::size_t admit(std::string_view octets, base::TimePoint now);
  [[nodiscard]] std::size_t admit(std::string_view octets) override {
    return admit(octets, worker_.clock.now());
  }
  // Makes the charges in Redis for the event that is held back. Each call of Redis ends within its timeout.
  [[nodiscard]] net::Task<void> charge_in_redis(base::TimePoint now);
  // Returns true if the stream must end before the event that is held back.
  [[nodiscard]] bool cuts() const noexcept;
  // From now on only counts events. Must be called when weir reads on although the client has disconnected.
  void stop_charging() noexcept;

  // Returns the estimate for a rule: the cost of the events that weir has forwarded.
  [[nodiscard]] limit::Cost estimate(const policy::Settlement& settlement) const noexcept {
    return cost_of(ahead_ == 0 ? events_ : events_ - 1, settlement);
  }
  // Returns what the meter has charged for this rule in this store; null if it does not charge for the rule.
  [[nodiscard]] Metered* metered(const policy::Rule& rule, Store store) noexcept;
  // Settles the charges of `key` that the meter made in addition to the reserve. `beyond`: how much the
  // actual cost exceeds the reserve. The charges keep this many units, the oldest charge first; their other
  // units are refunded. Returns how many units are missing if the charges are less than `beyond`; otherwise
  // 0.
  [[nodiscard]] limit::Cost settle_extras(const Metered& metered, const limit::Key& key, limit::Cost beyond,
                                          base::TimePoint now);

 private:
  [[nodiscard]] static limit::Cost cost_of(std::uint64_t events,
                                           const policy::Settlement& settlement) noexcept;
  [[nodiscard]] bool covers_event(base::TimePoint now);
  // Returns true if the events so far cost more than the rule has been charged, and the meter may charge more
  // now.
  [[nodiscard]] bool is_short(const Metered& metered, base::TimePoint now) const noexcept {
    return metered.mode == Mode::Charges && cost_of(events_, *metered.rule->settlement) > metered.covered &&
           now >= metered.ask_again;
  }
  void extend_here(Metered& metered, base::TimePoint now);
  [[nodiscard]] net::Task<void> extend_in_redis(Metered& metered);
  void note_failure(Metered& metered) noexcept;
  static void note(Metered& metered, Extra& extra, limit::Cost cost);
  [[nodiscard]] static limit::Cost first_step(const Metered& metered, limit::Cost needed) noexcept;
  static void give_up(Metered& metered) noexcept;

  Worker& worker_;
  http::RecordDecoder decoder_;
  std::vector<Metered> metered_;
  std::uint64_t events_ = 0;
  std::size_t ahead_ = 0;  // octets of the event that is held back; the event is counted already
  bool blank_ = true;      // so far, the record has only blanks
  bool is_event_ = false;  // so far, the record is a JSON object
};

}  // namespace weir::proxy
