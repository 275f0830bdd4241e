// Asks the stores what a request may do: the key table at once, then Redis in one trip. All or nothing over
// both.
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
  // Set instead of a decision:
  policy::Objection objection{};         // the request does not say what a rule needs to know
  const policy::Rule* closed = nullptr;  // its store is away, and on_store_failure = "closed"
};

class AdmissionController {
 public:
  // `config`: that the exchange began with.
  AdmissionController(Worker& worker, const Configuration& config, ExchangeBuffers& buffers) noexcept
      : worker_(worker),
        config_(config),
        buffers_(buffers),
        bills_{&buffers.evaluation.local, &buffers.evaluation.remote, &buffers.fallback},
        settlements_(worker, buffers) {}

  // Names the keys and charges what is kept here. True: `admission_result` is final; false: ask_redis() comes
  // next. `priority`: who gives way to it where a queue is full.
  [[nodiscard]] bool decide_here(base::TimePoint now, policy::Priority priority,
                                 AdmissionResult& admission_result);
  [[nodiscard]] net::Task<AdmissionResult> ask_redis();
  // Before a body is waited for that some rules ask for: whether the others refuse whatever it says. True:
  // `admission_result` is final. False: nothing is charged, and decide_here() comes next.
  [[nodiscard]] bool refuses_by_head(base::TimePoint now, AdmissionResult& admission_result);
  // The same before a token is verified: whether the rules refuse that need no claim of it.
  [[nodiscard]] bool refuses_unverified(base::TimePoint now, AdmissionResult& admission_result);

  // What a delayed request waits for: the departure of the enforced line with the longest delay, and the rule
  // of that line. REQUIRES a decision of Delay.
  struct Delayed {
    Departure departure{};   // its own, or that of one who gave way
    limit::Charge charge{};  // what the request itself was charged for it
    const policy::Rule* rule = nullptr;
    base::TimePoint not_before{};  // the latest that any other line has promised, in our time
  };
  [[nodiscard]] Delayed delayed() const;

  // It is to wait in the lane of this departure, which is the shaper's from now on.
  void hand_to_queue(const Departure& departure) { entrusted_ = departure.charge.key; }
  // It waited, and this is the departure that it took. Its own may be another's by now: never give that back.
  void note_taken(const Departure& departure) { taken_ = departure; }

  // The client's name in a rule that was asked, as people know it; nullopt where it was not. `rule` may be
  // null.
  [[nodiscard]] std::optional<limit::Key> key_in(const policy::Rule* rule) const;

  // What each rule said, but for those whose store could not be asked. Views of the rules.
  static constexpr std::size_t kMostAsked = 2 * limit::kMaxCharges;
  [[nodiscard]] boost::container::static_vector<observe::AppliedRule, kMostAsked> what_rules_said() const;

  // What the answer is to settle; what the bills come to once it has.
  [[nodiscard]] Settlements& settlements() noexcept { return settlements_; }
  [[nodiscard]] policy::Decision current_decision() const { return policy::decide(asked(), decided_at_); }
  // Returns when the key that a decision speaks of is fresh again, by one clock: the one that counted it. So
  // answers of one window name one instant. Redis's clock of what is kept there, else the machine's. REQUIRES
  // decision.rule.
  [[nodiscard]] base::TimePoint reset_at(const policy::Decision& decision) const noexcept;
  // When the decision was complete, by this weir's clock: when Redis had answered where it was asked. What it
  // says begins no later, for its clock was read before.
  [[nodiscard]] base::TimePoint decided_at() const noexcept { return decided_at_; }

  // Returns true if a rule with `hold = "answer"` counts the request as under way.
  [[nodiscard]] bool holds_until_answered() const;
  // Returns true if the answer matters though the client leaves: it settles a charge, or ends a place.
  // `patience`: how long it may be read for that.
  [[nodiscard]] bool needs_answer(base::Duration patience) const {
    return patience > base::Duration{0} && (settlements_.needs_answer() || holds_until_answered());
  }

  // The exchange has ended: gives back what it held, and tells the limiters that learn from it how it went.
  void end(base::TimePoint now, const limit::Ending& ending);

  // Gives everything back that was charged, but for the departure that is the shaper's: the request never
  // reached what it was charged for.
  void refund();
  // Its client left the queue. What it was charged stands where another was sent away for it: else it could
  // send everybody away and pay nothing.
  void refund_after_leaving();
  // It reached what it was charged for, or weir answers it: what was charged stands, whatever comes.
  void keep() noexcept { kept_ = true; }
  // The exchange has ended, perhaps by an exception: what nobody kept is given back.
  void abandon() noexcept;

 private:
  void refund_but(const limit::Key* lane);
  void refund_here(const limit::Charge& charge, base::TimePoint departure, base::TimePoint now,
                   bool overflow);
  void leave_to_lane(const Departure& departure);
  [[nodiscard]] bool refused_unasked(base::TimePoint now);
  [[nodiscard]] bool refused_here(base::TimePoint now);
  [[nodiscard]] bool refuses_so_far(base::TimePoint now, AdmissionResult& admission_result);
  [[nodiscard]] AdmissionResult rule();
  [[nodiscard]] AdmissionResult fall_back(limit::LineSet unasked);
  void count(const policy::Bill& bill, bool admitted);
  void count_clients(observe::TopClients& top, bool admitted);
  [[nodiscard]] limit::Key key_told(const policy::Bill& bill, std::size_t line) const;
  void hold(const policy::Bill& bill);
  void make_room_for_permits(const policy::Bill& bill);
  void hold_in_redis(const policy::Bill& bill);
  void hold_unasked(limit::LineSet unasked);
  void keep_remote(limit::LineSet unasked);
  void remember_message_rules(limit::LineSet unasked);
  void let_go();
  void settle_later(policy::Bill& bill, Settlements::Store store, base::TimePoint charged_at);
  // These in displace.cpp.
  [[nodiscard]] bool displace(base::TimePoint now, policy::Priority priority);
  [[nodiscard]] bool charge_but(std::size_t line, base::TimePoint now);
  [[nodiscard]] std::span<const policy::Bill* const> asked() const;
  // As a departure tells them.
  [[nodiscard]] static std::uint64_t shared_places(const policy::Rule& rule,
                                                   const limit::Charge& charge) noexcept {
    return policy::names_nobody(rule.key) ? limit::most_waiting(*charge.limiter, charge.cost) : 0;
  }
  // From when on the outcomes of a bill count.
  [[nodiscard]] base::TimePoint since(const policy::Bill* bill) const noexcept {
    return bill == &buffers_.evaluation.local ? charged_at_ : decided_at_;
  }

  Worker& worker_;
  const Configuration& config_;
  ExchangeBuffers& buffers_;
  std::array<const policy::Bill*, 3> bills_;
  Settlements settlements_;
  std::optional<Departure> taken_;
  std::optional<limit::Key> entrusted_;
  std::optional<Queue::Won> won_;
  base::TimePoint charged_at_{};  // the bill that is kept here
  base::TimePoint decided_at_{};
  base::TimePoint redis_now_{};
  std::size_t heard_ = 0;  // of the bills, by the ruling
  bool local_charged_ = false;
  bool remote_charged_ = false;
  bool fallback_charged_ = false;
  bool kept_ = false;
  bool refused_unasked_ = false;
};

}  // namespace weir::proxy
