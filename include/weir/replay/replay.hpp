// Recorded traffic, run again under a candidate rule set: who would newly be refused, who newly admitted.
//
//   lines ─► add(): which rules apply, whose key, what cost ─► run(): charges, settlements, releases, each at
//   its recorded instant and in its recorded turn (limit/turn.hpp), on a key table of its own ─► Report
//
// Pure: all times come from the log. Under the rules that wrote the log, every decision comes out as it was,
// as long as the log is whole from the start of weir on. What a rule asks that the log does not tell (a
// header, a cookie, a body) is taken from what the log says of the rule of that name, if that asked the same;
// else the rule is left out and named.
//
// One thread.
#pragma once

#include "weir/policy/identity.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule.hpp"
#include "weir/replay/line.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weir::replay {

// By what the traffic is judged. All of it outlives the replay.
struct Candidate {
  std::span<const policy::Rule> rules;
  std::span<const policy::Route> routes;
  const policy::ClientSettings& client;  // of it the IPv6 prefix
  std::size_t max_keys = 1'000'000;
};

// Requests that were decided otherwise.
struct Changes {
  std::uint64_t refused = 0;   // were admitted
  std::uint64_t admitted = 0;  // were refused
};

struct ClientChanges {
  std::string client;  // policy::write_client
  std::string digest;  // as logs and the admin pages name it; empty where the rule is new
  Changes newly;
};

struct RuleReport {
  std::string name;
  bool in_candidate = true;        // else it is only in the log
  bool shadow = false;             // of the candidate: it is counted and refuses nobody
  std::string left_out;            // why it was not replayed; empty: it was
  std::uint64_t met = 0;           // requests, by the candidate
  std::uint64_t refused_then = 0;  // by the log; what a shadow rule would have refused counts in both
  std::uint64_t refused_now = 0;
  std::uint64_t shadow_then = 0;       // of refused_then: it was in shadow, and refused nobody
  std::uint64_t otherwise = 0;         // requests of which it now says another word than then
  Changes newly;                       // requests whose verdict changed, and that it refuses or refused
  std::vector<ClientChanges> clients;  // those with most changes, in their order
};

struct Report {
  std::uint64_t lines = 0;
  std::array<std::uint64_t, kUnusable> unusable{};
  std::uint64_t requests = 0;  // lines that were used
  std::uint64_t resets = 0;    // likewise: keys that were given back
  base::TimePoint first{}, last{};
  std::uint64_t admitted_then = 0, refused_then = 0;
  std::uint64_t admitted_now = 0, refused_now = 0;
  Changes newly;
  std::vector<RuleReport> rules;
  std::vector<std::string> notes;  // what to keep in mind, in sentences
};

class Replay {
 public:
  explicit Replay(const Candidate& candidate);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // A line of a log, without its newline. In any order, and of any number of weirs.
  void add(std::string_view line);

  // Once, at the end. `progress`: told now and then which part is done, from 0 to 1. `most_clients`: of each
  // rule.
  [[nodiscard]] Report run(const std::function<void(double)>& progress, std::size_t most_clients);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::replay
