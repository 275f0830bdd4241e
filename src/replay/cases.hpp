// What is kept of a recorded request until all are known and can be put in order: its bill under the
// candidate's rules, and what is to become of each line.
#pragma once

#include "replay/names.hpp"

#include "weir/limit/charge.hpp"
#include "weir/limit/turn.hpp"
#include "weir/observe/counters.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/replay/line.hpp"
#include "weir/replay/replay.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::replay {

struct Case {
  limit::Turn turn = 0;
  base::TimePoint at{};
  std::uint32_t first_entry = 0;
  std::uint32_t first_refusal = 0;
  std::uint8_t entries = 0;
  std::uint8_t refusals = 0;
  bool admitted_then = false;
  bool unmet_now = false;  // the candidate's rules lack what they ask for
  bool by_queue = false;   // it took somebody's place: not a limiter's decision
  bool admitted_now = false;
};

// A line of its bill.
struct Entry {
  limit::Charge charge;
  ClientId client = 0;
  bool counted = false;         // policy::AppliedLimiter::counted
  observe::RuleOutcome said{};  // then, where `met_then`
  bool met_then = false;
  bool allowed = false;  // now
  bool overflow = false;
  std::int64_t delay = 0;  // µs, now
};

// A rule that refused it then.
struct Refusal {
  NameId rule = 0;
  ClientId client = 0;
};

// What was done to an entry later.
struct Event {
  observe::Amendment what;
  std::uint32_t of_case = 0;
  std::uint32_t entry = 0;
  bool departs_now = false;  // a refund of what the replay promised, not of what the log says
};

// A key that was given back: as the log names it, then as the candidate's rules do.
struct Forgotten {
  limit::Turn turn = 0;
  limit::Key key;
};

class Cases {
 public:
  explicit Cases(const Candidate& candidate);

  // Of a request.
  void add(const Line& line);
  void add(const Reset& reset);

  // Of what was refused then and holds a place: it leaves after the time that admitted requests took on
  // average.
  void add_guesses();

  // Once all lines are known: what was given back, under the names that the candidate's rules have for it.
  [[nodiscard]] std::vector<Forgotten> find_forgotten() const;

  std::vector<Case> cases;
  std::vector<Entry> entries;
  std::vector<Refusal> refusals;
  std::vector<Event> events;
  Names names;

  struct RuleFacts {
    std::string beyond;                   // beyond_log, or a parameter that the log hides
    std::vector<std::string> parameters;  // asked_parameters
    std::uint64_t told = 0;               // lines whose log says of it what the rule asks now
    std::uint64_t told_otherwise = 0;     // lines that tell of a rule of its name that asked something else
    std::uint64_t reset_otherwise = 0;    // keys that were given back of one that this one is not
  };
  std::vector<RuleFacts> facts;  // by rule of the candidate
  std::array<bool, 7> seen{};    // whether any line had an api_key, user, org, service, device, tier, country
  bool loads = false;            // whether any line had a load
  bool routes_beyond = false;    // which route it is, only the log can say
  std::uint64_t guessed = 0;     // releases
  std::uint64_t resets = 0;

 private:
  void make_request(const Line& line);
  void take_route_named(std::string_view name);
  void find_hidden();
  void collect(const Line& line, Case& made);
  void add_told(const policy::Rule& rule, const Line& line, policy::Bill& bill);
  void add_entries(const Line& line, const policy::Bill& bill, Case& made);
  void add_refusals(const Line& line, Case& made);
  void add_events(const Line& line, const Case& made);
  void settle_by_status(const Line& line, const policy::Rule& rule, Event event);

  Candidate candidate_;
  std::vector<Forgotten> forgotten_;       // by the names of the log
  std::vector<policy::Rule> plain_;        // those that the log tells all of
  std::vector<const policy::Rule*> told_;  // those that are taken from what it says
  std::vector<std::string> route_parameters_;
  policy::Evaluation evaluation_;
  policy::Bill told_bill_;
  http::RequestHead head_;
  policy::Request request_;
  std::string path_, host_;
  base::Duration admitted_for_{};  // all together
  std::uint64_t admitted_ = 0;
};

}  // namespace weir::replay
