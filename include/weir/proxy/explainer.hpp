// Explains what would become of a described request, by the code that decides on real ones and with nothing
// charged: the table is looked at by peek(), and what Redis is to be asked is handed out.
//
//   Explainer ─► remote() answered by whoever has a connection ─► explain()
//
// Belongs to one thread. What it refers to outlives it.
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

// One line of what Redis is asked, and its answer.
struct RedisLookup {
  limit::Charge charge;
  limit::Outcome outcome{};
  base::TimePoint clock{};  // Redis's, from which the outcome counts
  bool held_here = false;   // it was answered from units that this process took in advance
  std::string error{};      // why there is no outcome; empty: there is one
};

class Explainer {
 public:
  // `load`: of the system now, where the configuration looks at it, else 1.
  Explainer(const Configuration& config, const limit::KeyTable& table, SharedQueue& queue,
            const policy::ExplainRequest& explain_request, const policy::ExplainTime& time, double load);

  // To be answered before explain(), in whatever order.
  [[nodiscard]] std::span<RedisLookup> remote() noexcept { return looks_; }
  [[nodiscard]] policy::Explanation explain();

 private:
  void read(const policy::ExplainRequest& asked, double load);
  void find_route();
  void meet_rules();
  [[nodiscard]] bool peek_refuses();
  void object(const policy::Objection& objection);
  void settle(const std::string& what);
  void reject_early(unsigned status, std::string_view what);
  void take_answers();
  void decide();
  [[nodiscard]] bool refuse_where_crowded(policy::Decision& decision,
                                          std::span<const policy::Bill* const> bills);
  void tell_rules();
  void tell_bill(const policy::Bill& bill, std::string_view note);
  void tell_verdict(policy::Decision decision, std::span<const policy::Bill* const> bills);
  void tell_arrival(std::string_view fields);
  void tell_last(std::string_view fields);
  void tell_answer(unsigned status, std::string_view content_type, std::string_view fields,
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
  base::TimePoint redis_now_{};  // of the first look
  const base::TimePoint now_;    // by the clock of limits
  policy::DescribedRequest described_;
  const policy::Route* route_ = nullptr;
  std::vector<policy::RuleCheck> rule_checks_;
  policy::Evaluation evaluation_;
  policy::Bill fallback_;
  std::vector<RedisLookup> looks_;  // of evaluation_.remote's lines
  limit::LineSet unasked_ = 0;
  bool settled_ = false;  // the verdict is known before any limit is asked
  policy::Explanation told_;
};

}  // namespace weir::proxy
