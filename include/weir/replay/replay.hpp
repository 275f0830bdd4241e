// Runs recorded traffic again under candidate rules: which clients would newly be refused or admitted.
//
//   lines ─► add(): which rules apply, whose key, what cost ─► run(): charges, settlements, releases, each at
//   its recorded instant and turn (limit/hybrid_timestamp.hpp), on its own key table ─► Report
//
// Pure: all times come from the log. Under the rules that wrote the log, every decision is repeated, if the
// log is whole from the start of weir on. A rule may need facts that the log lacks (a header, a cookie, a
// body). Then the replay uses the logged decision of the rule with that name, if that rule asked the same.
// Otherwise the rule is left out and named in the report.
//
// Use on one thread.
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

// The rules to replay under. All of them must outlive the replay.
struct Candidate {
  std::span<const policy::Rule> rules;
  std::span<const policy::Route> routes;
  const policy::ClientSettings& client;  // only the IPv6 prefix is used
  std::size_t max_keys = 1'000'000;
};

// Counts of requests whose verdict changed.
struct Changes {
  std::uint64_t refused = 0;   // were admitted, are refused now
  std::uint64_t admitted = 0;  // were refused, are admitted now
};

struct ClientChanges {
  std::string client;  // as of policy::write_client
  std::string digest;  // as in logs and on admin pages; empty if the rule is new
  Changes newly;
};

struct RuleReport {
  std::string name;
  bool in_candidate = true;        // false: the rule is only in the log
  bool shadow = false;             // the candidate's rule is in shadow: it is counted and refuses nothing
  std::string left_out;            // why it was not replayed; empty: it was
  std::uint64_t met = 0;           // requests to which the candidate's rule applies
  std::uint64_t refused_then = 0;  // according to the log; refusals by a shadow rule count here and below
  std::uint64_t refused_now = 0;
  std::uint64_t shadow_then = 0;       // part of refused_then: the rule was in shadow and refused nothing
  std::uint64_t otherwise = 0;         // requests about which the rule decides differently now
  Changes newly;                       // requests whose verdict changed and that the rule refuses or refused
  std::vector<ClientChanges> clients;  // the clients with the most changes, in that order
};

struct Report {
  std::uint64_t lines = 0;
  std::array<std::uint64_t, kUnusable> unusable{};
  std::uint64_t requests = 0;  // usable lines about requests
  std::uint64_t resets = 0;    // usable lines about resets
  base::TimePoint first{}, last{};
  std::uint64_t admitted_then = 0, refused_then = 0;
  std::uint64_t admitted_now = 0, refused_now = 0;
  Changes newly;
  std::vector<RuleReport> rules;
  std::vector<std::string> notes;  // caveats, as sentences
};

class Replay {
 public:
  explicit Replay(const Candidate& candidate);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Adds a line of a log, without its newline. Lines may come in any order and from several weirs.
  void add(std::string_view line);

  // Must be called once, after all lines. `progress`: called now and then with the finished part, from 0 to
  // 1. `most_clients`: for each rule.
  [[nodiscard]] Report run(const std::function<void(double)>& progress, std::size_t most_clients);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::replay
