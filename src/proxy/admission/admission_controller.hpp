// AdmissionController decides on one request. It charges the key table first, then Redis in one round trip. A
// request is charged in both stores or in neither. ExchangeContext owns the controller; only the worker's
// thread uses it.
#pragma once

#include "proxy/admission/settlements.hpp"
#include "proxy/exchange/exchange_buffers.hpp"

#include "weir/net/asio.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/proxy/queue.hpp"
#include "weir/proxy/worker.hpp"

#include <array>
#include <optional>
#include <span>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

struct AdmissionResult {
  policy::Decision decision{};
  // If there is no decision, either `rejection` or `closed` is set.
  policy::Rejection rejection{};         // the request lacks something that a rule needs
  const policy::Rule* closed = nullptr;  // Redis is unavailable and the rule has on_store_failure = "closed"
};

class AdmissionController {
 public:
  // `config`: the configuration that the exchange began with. All arguments must outlive this object.
  AdmissionController(Worker& worker, const Configuration& config, ExchangeBuffers& buffers) noexcept
      : worker_(worker),
        config_(config),
        buffers_(buffers),
        bills_{&buffers.evaluation.local, &buffers.evaluation.remote, &buffers.fallback},
        settlements_(worker, buffers) {}

  // Computes the request's keys, and makes the charges in the key table. Returns true if `admission_result`
  // is final. If this function returns false, the caller must call ask_redis() next. `priority`: decides
  // which waiting request the new request may displace if a queue is full.
  [[nodiscard]] bool decide_here(base::TimePoint now, policy::Priority priority,
                                 AdmissionResult& admission_result);
  // Makes the charges in Redis, and returns the final result.
  [[nodiscard]] net::Task<AdmissionResult> ask_redis();
  // Must be called before weir waits for a body that some rules read. Returns true if the rules that read no
  // body already refuse the request; `admission_result` is then final. If this function returns false,
  // nothing is charged, and the caller must call decide_here() once it has read the body.
  [[nodiscard]] bool refuses_by_head(base::TimePoint now, AdmissionResult& admission_result);
  // Like refuses_by_head(), but must be called before weir verifies a token. Checks only the rules that need
  // no claim of the token.
  [[nodiscard]] bool refuses_unverified(base::TimePoint now, AdmissionResult& admission_result);

  // The departure that a delayed request waits for. It comes from the enforced charge with the longest delay.
  struct Delayed {
    Departure departure{};   // promised to this request, or taken from a request that it displaced
    limit::Charge charge{};  // the request's own charge, even if `departure` was another request's
    const policy::Rule* rule = nullptr;
    // The latest departure of the request's other charges, by this weir's clock. The request must not depart
    // earlier.
    base::TimePoint not_before{};
  };
  // Returns the departure to wait for. REQUIRES that the decision is Delay.
  [[nodiscard]] Delayed delayed() const;

  // Records that the request waits in the lane (the queue of one key) of this departure. From now on the
  // shaper owns the departure.
  void hand_to_queue(const Departure& departure) { queue_lane_ = departure.charge.key; }
  // Records which departure the request took, so that refund() refunds this departure. The shaper exchanges
  // departures between requests, so the request may have taken another departure than the promised one.
  void note_taken(const Departure& departure) { taken_ = departure; }

  // Returns the key that logs show for the request under `rule`: the client's key in Redis if the rule uses
  // Redis, even if this process charged in place of Redis. Returns nullopt if `rule` is null, or if the
  // request has no charge of this rule.
  [[nodiscard]] std::optional<limit::Key> key_in(const policy::Rule* rule) const;

  static constexpr std::size_t kMostAsked = 2 * limit::kMaxCharges;
  // Returns the outcome of each rule. Omits rules whose store could not be asked. The entries point to the
  // rules.
  [[nodiscard]] boost::container::static_vector<observe::AppliedRule, kMostAsked> applied_rules() const;

  // Must be called before the decision on a question, whose asker may settle any charge.
  void expect_settlement() noexcept { settles_any_ = true; }
  // Returns the charges that the answer corrects.
  [[nodiscard]] Settlements& settlements() noexcept { return settlements_; }
  // Returns the decision by the present outcomes of the charges, which a settlement may have changed since
  // the request was admitted.
  [[nodiscard]] policy::Decision current_decision() const {
    return policy::decide(decisive_bills(), decided_at_);
  }
  // Returns the decision that concerns one descriptor of a question, also after a refusal has refunded the
  // charges. `descriptor`: the index in Request::descriptors. REQUIRES that there is a decision.
  [[nodiscard]] policy::Decision decision_for_descriptor(std::size_t descriptor) const {
    return policy::decide_for_descriptor(std::span(bills_).first(decisive_count_), decided_at_, descriptor);
  }
  // Returns when the key of the decision's rule is like a fresh key again: by Redis's clock if the key is
  // in Redis, otherwise by the machine's clock. Does not convert Redis's time to another clock: the
  // conversion would depend on the delay of Redis's answer, and the time would differ between requests of one
  // window. REQUIRES decision.rule.
  [[nodiscard]] base::TimePoint reset_at(const policy::Decision& decision) const noexcept;
  // Returns when the decision was complete, by this weir's clock. If weir asked Redis, this is the time after
  // the answer, so Redis's outcomes may describe an earlier time.
  [[nodiscard]] base::TimePoint decided_at() const noexcept { return decided_at_; }

  // Returns true if the request has a permit of a concurrency limit.
  [[nodiscard]] bool holds() const noexcept {
    return !buffers_.permits.empty() || !buffers_.shared_permits.empty();
  }
  // Returns true if the request has a permit of a rule with `hold = "answer"`.
  [[nodiscard]] bool holds_until_answered() const;
  // Returns true if weir must read the answer although the client has disconnected, because the answer
  // settles a charge or releases a permit. `patience`: how long weir may read the answer for that purpose; 0:
  // never.
  [[nodiscard]] bool needs_answer(base::Duration patience) const {
    return patience > base::Duration{0} && (settlements_.needs_answer() || holds_until_answered());
  }

  // Ends the exchange: releases its local permits, and reports `ending` (the server's latency or failure) to
  // the limiters that adapt to the load of the servers.
  void end(base::TimePoint now, const limit::Ending& ending);

  // Refunds the charges of a request that reaches no server, except permits. If the shaper owns the departure
  // of a charge (hand_to_queue), does not refund this charge.
  void refund();
  // Must be called when the client has left the queue. Refunds the charges, but keeps them if the request has
  // displaced another request, so that no client can displace others for free.
  void refund_after_leaving();
  // Must be called when a server may have the request, or when weir itself answers an admitted request or
  // question. From then on, abandon() refunds nothing.
  void keep() noexcept { kept_ = true; }
  // Refunds the charges unless keep() was called. Must be called when the exchange ends, also after an
  // exception.
  void abandon() noexcept;

 private:
  void refund_except(const limit::Key* lane);
  void refund_here(const limit::Charge& charge, base::TimePoint departure, base::TimePoint now,
                   bool overflow);
  void leave_to_lane(const Departure& departure);
  [[nodiscard]] bool refused_without_redis(base::TimePoint now);
  [[nodiscard]] bool refused_here(base::TimePoint now);
  [[nodiscard]] bool refuses_so_far(base::TimePoint now, AdmissionResult& admission_result);
  [[nodiscard]] AdmissionResult conclude();
  void overdraw();
  void overdraw_fallback();
  void overdraw_late(limit::ChargeSet unanswered);
  [[nodiscard]] AdmissionResult fall_back(limit::ChargeSet unanswered);
  void count(const policy::Bill& bill, bool admitted);
  void count_clients(observe::TopClients& top, bool admitted);
  void count_refused_clients(observe::RefusedClients& refused);
  [[nodiscard]] limit::Key reported_key(const policy::Bill& bill, std::size_t index) const;
  // The functions that hold and release permits, and end(), are defined in transfers.cpp.
  void hold(const policy::Bill& bill);
  void make_room_for_permits(const policy::Bill& bill);
  void hold_in_redis(const policy::Bill& bill);
  void hold_unanswered(limit::ChargeSet unanswered);
  void keep_remote(limit::ChargeSet unanswered);
  void remember_message_rules(limit::ChargeSet unanswered);
  void forget_charges();
  void settle_later(policy::Bill& bill, Settlements::Store store, base::TimePoint charged_at);
  // refund…(), abandon(), leave_to_lane(), and the functions from here to charge_except() are defined in
  // transfers.cpp.
  [[nodiscard]] bool charge_or_displace(base::TimePoint now, policy::Priority priority);
  void note_refusal(const limit::Charge& charge, base::TimePoint now, limit::Outcome& outcome);
  [[nodiscard]] bool displace(base::TimePoint now, policy::Priority priority);
  [[nodiscard]] bool charge_except(std::size_t index, base::TimePoint now);
  [[nodiscard]] std::span<const policy::Bill* const> decisive_bills() const;
  // Returns how many units may wait in this charge's lane if all clients share the lane; 0 for a lane of one
  // client (Departure::shared_max_waiting).
  [[nodiscard]] static std::uint64_t shared_max_waiting(const policy::Rule& rule,
                                                        const limit::Charge& charge) noexcept {
    return policy::names_nobody(rule.key) ? limit::most_waiting(*charge.limiter, charge.cost) : 0;
  }
  // Returns the time, by this weir's clock, at which the durations in the outcomes of `bill` begin.
  [[nodiscard]] base::TimePoint since(const policy::Bill* bill) const noexcept {
    return bill == &buffers_.evaluation.local ? charged_at_ : decided_at_;
  }

  Worker& worker_;
  const Configuration& config_;
  ExchangeBuffers& buffers_;
  std::array<const policy::Bill*, 3> bills_;
  Settlements settlements_;
  std::optional<Departure> taken_;        // the departure that the request took (note_taken)
  std::optional<limit::Key> queue_lane_;  // the lane whose departure the shaper owns (hand_to_queue)
  std::optional<Queue::Displacement> displacement_;  // the departure that displace() took for this request
  base::TimePoint charged_at_{};                     // when the key table was charged
  // When Redis answered; equals charged_at_ if Redis was not asked. The fallback is charged at this time.
  base::TimePoint decided_at_{};
  // When Redis answered, by its clock. The durations in the outcomes of the bill for Redis begin at this
  // time.
  base::TimePoint redis_now_{};
  std::size_t decisive_count_ = 0;  // number of bills at the front of bills_ on which the decision is based
  bool local_charged_ = false;
  bool remote_charged_ = false;
  bool fallback_charged_ = false;
  bool settles_any_ = false;            // true: any charge may be settled (expect_settlement)
  bool kept_ = false;                   // true: abandon() must not refund the charges (keep)
  bool overdrawn_late_ = false;         // true: overdraw_late() was called
  bool refused_without_redis_ = false;  // true: the DenyCache refused, so Redis was not asked
};

}  // namespace weir::proxy
