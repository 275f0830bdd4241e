// Runs recorded traffic again under the rules of another configuration, the candidate rules. Reports for
// which clients the result would change, from admitted to refused or the reverse.
//
//   lines ─► add(): rules, keys and costs of each request ─► run(): charges and their changes, in order
//
// Pure: all times come from the log. With the rules under which the log was written, the replay repeats every
// decision. This requires that the log begins with the start of weir.
//
// A candidate rule may need facts that the log lacks (a header, a cookie, a body). If the log has decisions
// of a rule with the same name, conditions, key and cost, the replay uses the keys and costs in those
// decisions. Otherwise the rule is left out, and the report says so.
//
// A replay must be used on one thread.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule.hpp"
#include "weir/replay/log_line.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weir::replay {

// The rules that the replay tries, and their configuration. Keeps references: all members must outlive the
// replay.
struct Candidate {
  std::span<const policy::Rule> rules;
  std::span<const policy::Route> routes;
  // Used for the IPv6 prefix length, and to know which attributes are claims and whether tokens are verified.
  const policy::ClientSettings& client;
  std::size_t max_keys = 1'000'000;
};

// Counts of requests whose verdict changed.
struct Changes {
  std::uint64_t refused = 0;   // requests that the log admitted and the replay refuses
  std::uint64_t admitted = 0;  // requests that the log refused and the replay admits
};

struct ClientChanges {
  std::string client;  // the client's text, as policy::write_client() writes it
  std::string digest;  // the client's name in logs and on admin pages; empty if the rule is new
  Changes newly;
};

struct RuleReport {
  std::string name;
  bool in_candidate = true;  // false: only the log has this rule, not the candidate
  bool shadow = false;       // the candidate's rule is a shadow rule, which refuses nothing
  std::string left_out;      // why the rule was not replayed; empty if it was replayed
  std::uint64_t met = 0;     // requests to which the candidate's rule applies
  // Refusals according to the log. All counts of refusals in this struct include refusals by a shadow rule.
  std::uint64_t refused_then = 0;
  std::uint64_t refused_now = 0;
  std::uint64_t shadow_then = 0;       // the part of refused_then that a shadow rule made, without effect
  std::uint64_t otherwise = 0;         // requests that the replay decides differently than the log
  Changes newly;                       // requests whose verdict changed because of this rule
  std::vector<ClientChanges> clients;  // the clients with the most changes, in descending order
};

struct Report {
  std::uint64_t lines = 0;
  std::array<std::uint64_t, kUnusable> unusable{};
  std::uint64_t requests = 0;  // usable lines that are about requests
  std::uint64_t resets = 0;    // usable lines that are about resets
  base::TimePoint first{}, last{};
  std::uint64_t admitted_then = 0, refused_then = 0;
  std::uint64_t admitted_now = 0, refused_now = 0;
  Changes newly;
  std::vector<RuleReport> rules;
  // Sentences about how far the result can be trusted. Example: the log lacks facts that a rule needs.
  std::vector<std::string> notes;
};

class Replay {
 public:
  explicit Replay(const Candidate& candidate);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Adds a line of a log, without its newline. The lines may come from several weirs, and in any order.
  void add(std::string_view line);

  // Must be called once, after all lines were added. Now and then calls `progress` with the completed part of
  // the work, from 0 to 1, and passes on the exceptions of `progress`. `most_clients` is the maximum number
  // of clients in the report of each rule.
  [[nodiscard]] Report run(const std::function<void(double)>& progress, std::size_t most_clients);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::replay
