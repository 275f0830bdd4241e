// Makes the request of each log line again, as far as the log tells, and finds the rules that may match the
// request. Owned by Cases.
//
// A log lacks some facts of requests, such as their header fields. For a rule that needs such a fact, the
// replay uses the logged decisions of the rule with the same name.
#pragma once

#include "weir/policy/request.hpp"
#include "weir/policy/rule_finder.hpp"
#include "weir/replay/log_line.hpp"
#include "weir/replay/replay.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::replay {

class LoggedRequests {
 public:
  explicit LoggedRequests(const Candidate& candidate);
  LoggedRequests(const LoggedRequests&) = delete;
  LoggedRequests& operator=(const LoggedRequests&) = delete;

  // Makes request() from the log line. `line` must stay alive as long as callers use request().
  void read(const LogLine& line);
  [[nodiscard]] const policy::Request& request() const noexcept { return request_; }
  // Returns the rules that may match the request. Leaves out the rules whose logged decisions are used. The
  // result is valid until the next call.
  [[nodiscard]] policy::RuleList find_rules();

  // Returns the rules whose logged decisions are used from the present line on.
  [[nodiscard]] const std::vector<const policy::Rule*>& logged_rules() const noexcept {
    return logged_rules_;
  }
  // Returns further rules whose logged decisions are used for the present line. If the line is a question,
  // returns none; otherwise the rules that need the domain or the descriptors of a question.
  [[nodiscard]] const std::vector<const policy::Rule*>& logged_rules_without_question() const noexcept {
    return has_question_ ? no_rules_ : question_rules_;
  }
  // Returns the first fact that the rule needs but the log lacks; empty if the log has all facts.
  [[nodiscard]] const std::string& lacks(const policy::Rule& rule) const { return facts_[rule.index].beyond; }

  // For each attribute of a client: true if at least one line has it. The order is api_key, user, org,
  // service, device, tier and country.
  std::array<bool, 7> has_attribute{};
  bool has_factors = false;         // true: in some lines, a rule grants less than its whole limit
  bool has_load = false;            // true: some lines state the system's load
  bool uses_logged_routes = false;  // true: the log lacks facts for routing, so logged routes are used

 private:
  struct RuleFacts {
    std::string beyond;                   // see lacks()
    std::vector<std::string> parameters;  // the names of the query parameters that the rule needs
    // The names of the descriptor entries whose values the rule's conditions compare with texts.
    std::vector<std::string> descriptors;
  };

  void take_factors(const LogLine& line);
  void take_route_named(std::string_view name);
  void take_question(const LogLine& line);
  void find_hidden(const LogLine& line);

  const Candidate candidate_;
  std::vector<RuleFacts> facts_;  // the index is the index of the replayed rule
  policy::RuleFinder finder_;
  policy::RuleFinder::Scratch found_;              // the rules that may match the line
  std::vector<const policy::Rule*> logged_rules_;  // the rules whose logged decisions are used
  // The rules that need the values of a question. For a line without these values, the replay uses the logged
  // decisions of these rules.
  std::vector<const policy::Rule*> question_rules_;
  const std::vector<const policy::Rule*> no_rules_;
  bool has_question_ = false;  // true: the current line has the values of a question
  std::vector<std::string> route_parameters_;
  http::RequestHead head_;
  policy::Request request_;
  limit::Factors factors_;  // the factors in the current line, by the index of the replayed rule
  std::string path_, host_;
};

// Returns the rule's decision in the line; null if there is none. If the rule applied to several descriptors
// of a question, the line has several decisions. `nth` selects one of them; 0 is the first.
[[nodiscard]] const LoggedRule* logged_rule(const LogLine& line, const policy::Rule& rule,
                                            std::size_t nth = 0) noexcept;

}  // namespace weir::replay
