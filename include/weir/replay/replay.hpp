// Runs recorded traffic again under candidate rules. Reports which clients would be refused or admitted that
// were not before.
//
//   lines ─► add(): which rules apply, whose key, what cost ─► run(): charges, settlements, releases, each at
//
// Pure: all times come from the log. Under the rules that wrote the log, the replay repeats every decision,
// if the log is complete from the start of weir on. A candidate rule may need facts that the log lacks (a
// header, a cookie, a body). If the log has decisions of a rule with the same name that asked the same, the
// replay uses these decisions. Otherwise the rule is left out, and the report says so.
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

// The candidate rules and their configuration. All of these must outlive the replay.
struct Candidate {
  std::span<const policy::Rule> rules;
  std::span<const policy::Route> routes;
  const policy::ClientSettings& client;  // only its IPv6 prefix length is used
  std::size_t max_keys = 1'000'000;
};

// Counts of requests whose verdict changed.
struct Changes {
  std::uint64_t refused = 0;   // requests that were admitted then and are refused now
  std::uint64_t admitted = 0;  // requests that were refused then and are admitted now
};

struct ClientChanges {
  std::string client;  // as policy::write_client() writes it
  std::string digest;  // the client's name in logs and on admin pages; empty if the rule is new
  Changes newly;
};

struct RuleReport {
  std::string name;
  bool in_candidate = true;  // false: only the log has this rule
  bool shadow = false;       // the candidate's rule is a shadow rule: it counts and refuses nothing
  std::string left_out;      // the reason why the rule was not replayed; empty if it was
  std::uint64_t met = 0;     // requests to which the candidate's rule applies
  // Refusals according to the log. Here and below, refusals by a shadow rule count, too.
  std::uint64_t refused_then = 0;
  std::uint64_t refused_now = 0;
  std::uint64_t shadow_then = 0;  // part of refused_then: as a shadow rule, which refused nothing
  std::uint64_t otherwise = 0;    // requests about which the rule decides differently now
  Changes newly;                  // requests whose verdict changed, if this rule refuses them now or did then
  std::vector<ClientChanges> clients;  // the clients with the most changes; the most first
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
  std::vector<std::string> notes;  // caveats about the result, as sentences
};

class Replay {
 public:
  explicit Replay(const Candidate& candidate);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Adds a line of a log, without its newline. Lines may be in any order, and from several weirs.
  void add(std::string_view line);

  // Must be called once, after all lines were added. Calls `progress` from time to time with the finished
  // part, from 0 to 1. `most_clients` is the maximum number of clients in the report of each rule.
  [[nodiscard]] Report run(const std::function<void(double)>& progress, std::size_t most_clients);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::replay
