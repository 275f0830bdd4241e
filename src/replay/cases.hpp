// The recorded requests. The replay owns one Cases object, which stores the requests until all lines are
// read. The replay then sorts them by time. Each request has its bill (the charges of the rules that the
// replay tries), and the later changes of its charges.
#pragma once

#include "replay/logged_requests.hpp"
#include "replay/names.hpp"

#include "weir/limit/charge.hpp"
#include "weir/limit/hybrid_timestamp.hpp"
#include "weir/observe/counters.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/replay/log_line.hpp"
#include "weir/replay/replay.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::replay {

// One recorded request. Members that end in `_then` describe the log, members that end in `_now` the replay.
struct Case {
  limit::HybridTimestamp timestamp = 0;
  base::TimePoint at{};
  std::uint32_t first_entry = 0;
  std::uint32_t first_refusal = 0;
  std::uint8_t entries = 0;
  std::uint8_t refusals = 0;
  bool admitted_then = false;
  bool unmet_now = false;  // true: the request lacks a value that a replayed rule needs
  bool by_queue = false;   // true: the request displaced another one in a queue, so no limiter decided
  bool admitted_now = false;
};

// One charge of a request's bill.
struct Entry {
  limit::Charge charge;
  ClientId client = 0;
  bool counted = false;           // true: this charge only counts, and another charge of the rule decides
  limit::Cost overdraft = 0;      // units to charge whatever the decision is (policy::ChargeSource)
  observe::RuleOutcome logged{};  // the logged outcome; valid if `met_then`
  bool met_then = false;          // true: the log has this rule's decision about the request
  bool allowed = false;           // true: the limiter allows the charge in the replay
  bool overflow = false;
  std::int64_t delay = 0;  // the delay in the replay, in µs
};

// A rule that refused the request, according to the log.
struct Refusal {
  NameId rule = 0;
  ClientId client = 0;
};

// A later change of an entry's charge: a refund, a settlement or a release.
struct Event {
  observe::Amendment what;
  std::uint32_t of_case = 0;
  std::uint32_t entry = 0;
  // Which departure a refund cancels. True: the request's departure in the replay; false: the departure that
  // the log states (`what.departure`). Unused if `what` is not a refund.
  bool departs_now = false;
};

// A reset of a key. `key`: the key's name in the log (in Cases::forgotten_), or its name under the replayed
// rules (in the result of find_forgotten()).
struct Forgotten {
  limit::HybridTimestamp timestamp = 0;
  limit::Key key;
};

class Cases {
 public:
  explicit Cases(const Candidate& candidate);

  // Add a logged request, or a logged reset of a key.
  void add(const LogLine& line);
  void add(const Reset& reset);

  // Adds releases of permits for all requests that the log refused, because the replay may admit them. The
  // log cannot say when these requests would have ended. So each of their permits is released after the
  // average duration of the requests that the log admitted. Must be called after all lines were added.
  void add_guesses();

  // Returns the reset keys, with their names under the replayed rules. Must be called after all lines were
  // added.
  [[nodiscard]] std::vector<Forgotten> find_forgotten() const;

  LoggedRequests requests;
  std::vector<Case> cases;
  std::vector<Entry> entries;
  std::vector<Refusal> refusals;
  std::vector<Event> events;
  Names names;

  struct RuleFacts {
    // The number of lines that have a decision of a rule with this name, conditions, key and cost.
    std::uint64_t logged = 0;
    // The number of lines that have a decision of a rule with this name, but with other conditions, another
    // key or another cost.
    std::uint64_t logged_differently = 0;
    // Number of logged resets that the replay leaves out, because the rule has changed or limits concurrency.
    std::uint64_t reset_otherwise = 0;
  };
  std::vector<RuleFacts> facts;  // the index is the index of the replayed rule
  std::uint64_t guessed = 0;     // number of releases that add_guesses() added
  std::uint64_t resets = 0;

 private:
  void collect(const LogLine& line, Case& made);
  void add_logged(const policy::Rule& rule, const LogLine& line, policy::Bill& bill);
  void add_logged(const policy::Rule& rule, const LoggedRule& logged, limit::Cost overdraft,
                  policy::Bill& bill);
  void add_entries(const LogLine& line, const policy::Bill& bill, Case& made);
  void add_refusals(const LogLine& line, Case& made);
  void add_events(const LogLine& line, const Case& made);
  void add_overdrafts(const LogLine& line, const Case& made);
  void settle_by_line(const LogLine& line, const policy::Rule& rule, Event event);

  Candidate candidate_;
  std::vector<Forgotten> forgotten_;  // the reset keys, with their names in the log
  policy::Evaluation evaluation_;
  policy::Bill logged_bill_;
  base::Duration admitted_for_{};  // the sum of the durations of all requests that the log admitted
  std::uint64_t admitted_ = 0;
};

}  // namespace weir::replay
