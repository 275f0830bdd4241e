// Explains how weir would decide on a described request. Explainer uses the code that decides on real
// requests but charges nothing. It reads the key table with peek(). The caller reads the state in Redis:
//
//   Explainer ─► the caller answers each lookup in remote() ─► explain()
//
// Lives in the coroutine frame of server::Inspector::explain(), on the control thread. The objects that an
// Explainer refers to must outlive it.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/explain_request.hpp"
#include "weir/policy/explanation.hpp"
#include "weir/proxy/configuration.hpp"
#include "weir/proxy/shaper.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::proxy {

// One lookup in Redis, and the answer from Redis.
struct RedisLookup {
  limit::Charge charge;
  limit::Outcome outcome{};
  // When Redis answered, by its clock. The durations in `outcome` begin at this time.
  base::TimePoint clock{};
  bool held_here = false;  // true: the answer comes from units that this process took from Redis in advance
  std::string error{};     // why there is no outcome; empty if there is an outcome
};

class Explainer {
 public:
  // `load`: the current load if some rule depends on the load, else 1.
  Explainer(const Configuration& config, const limit::KeyTable& table, SharedQueue& queue,
            const policy::ExplainRequest& explain_request, const policy::ExplainTime& time, double load);

  // Returns the lookups that the caller must answer before explain(), in any order.
  [[nodiscard]] std::span<RedisLookup> remote() noexcept { return lookups_; }
  [[nodiscard]] policy::Explanation explain();

 private:
  void read(const policy::ExplainRequest& asked, double load);
  void find_route();
  void explain_uncharged();
  void evaluate_rules();
  [[nodiscard]] bool peek_refuses();
  void explain_rejection(const policy::Rejection& rejection);
  void answer_before_limits(const std::string& what);
  void reject_early(unsigned status, std::string_view what);
  void take_redis_answers();
  void explain_pacing();
  void decide();
  [[nodiscard]] bool refuse_if_client_queue_full(policy::Decision& decision,
                                                 std::span<const policy::Bill* const> bills);
  void explain_rules();
  void explain_bill(const policy::Bill& bill, std::string_view note);
  void explain_verdict(policy::Decision decision, std::span<const policy::Bill* const> bills);
  void explain_arrival(std::string_view fields);
  void explain_last(std::string_view fields);
  void explain_answer(unsigned status, std::string_view content_type, std::string_view fields,
                      std::string_view body);
  [[nodiscard]] base::TimePoint reset_at(const policy::Decision& decision) const noexcept;
  [[nodiscard]] bool answers_itself() const;
  [[nodiscard]] std::string sentence(const policy::Decision& decision,
                                     std::span<const policy::Bill* const> bills) const;
  [[nodiscard]] std::string destination() const;

  const Configuration& config_;
  const limit::KeyTable& table_;
  SharedQueue& queue_;
  const policy::ExplainTime time_;
  base::TimePoint redis_now_{};  // Redis's time at the first lookup
  const base::TimePoint now_;    // the time of the explanation, by the limiters' clock
  policy::DescribedRequest described_;
  const policy::Route* route_ = nullptr;
  bool is_question_ = false;  // true: weir forwards nothing, and needs no route
  std::vector<policy::RuleCheck> rule_checks_;
  policy::Evaluation evaluation_;
  policy::Bill fallback_;
  std::vector<RedisLookup> lookups_;  // one for each charge of evaluation_.remote
  limit::ChargeSet unanswered_ = 0;
  bool decided_early_ = false;  // true: the verdict does not depend on any limit
  policy::Explanation explanation_;
};

}  // namespace weir::proxy
