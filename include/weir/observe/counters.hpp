// The counters of one worker.
//
// Each worker has one Counters object. Only the worker's thread counts; the thread that reloads adds and
// clears counters. The admin thread may read the Counters of all workers at any time and adds them up
// (tally.hpp). The configuration determines the number of counters, so clients cannot create any. Routes,
// rules and upstreams have indexes, which a reload assigns to names. A name that stays in the
// configuration keeps its index and its counts. Counters are cleared before another name gets their index.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/observe/ask_tallies.hpp"
#include "weir/observe/histogram.hpp"
#include "weir/observe/outcomes.hpp"
#include "weir/observe/refused_clients.hpp"
#include "weir/observe/route_tallies.hpp"
#include "weir/observe/rows.hpp"
#include "weir/observe/tally.hpp"
#include "weir/observe/top_clients.hpp"
#include "weir/observe/upstream_tallies.hpp"
#include "weir/observe/verdict.hpp"
#include "weir/policy/identity/token_fault.hpp"
#include "weir/policy/route.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace weir::observe {

class alignas(64) Counters {
 public:
  struct Shape {
    std::size_t routes = 0;
    std::size_t rules = 0;
    std::size_t upstreams = 0;
  };
  // The maximum numbers of routes and upstreams in a process. The numbers include the routes and upstreams of
  // older configurations that still have unfinished requests.
  static constexpr std::size_t kMostRoutes = 4096;
  static constexpr std::size_t kMostUpstreams = 1024;

  explicit Counters(const Shape& shape);
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  // Returns the counter of ended requests with this route and status. `route`: nullopt if no route matched.
  // `status`: 0 if weir sent no answer.
  [[nodiscard]] Tally& requests(std::optional<std::size_t> route, unsigned status) noexcept {
    return row_of(route)[status_slot(status)];
  }
  [[nodiscard]] const Tally& requests(std::optional<std::size_t> route, unsigned status) const noexcept {
    return row_of(route)[status_slot(status)];
  }
  static constexpr std::size_t kStatusSlots = RouteTallies::kStatusSlots;
  using StatusSums = std::array<std::uint64_t, kStatusSlots>;
  // Adds a route's counts of ended requests to `sums`, which has an element for each status. For metrics
  // pages.
  void add_requests(std::optional<std::size_t> route, StatusSums& sums) const noexcept;
  // Returns the status that is counted in `slot` of a StatusSums. REQUIRES: slot < kStatusSlots.
  [[nodiscard]] static constexpr unsigned status_at(std::size_t slot) noexcept {
    return slot == 0 ? kNoStatus : kFirstStatus + static_cast<unsigned>(slot) - 1;
  }
  [[nodiscard]] Tally& decisions(limit::RuleIndex rule, RuleOutcome outcome) noexcept {
    return rules_[rule].decisions[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] const Tally& decisions(limit::RuleIndex rule, RuleOutcome outcome) const noexcept {
    return rules_[rule].decisions[static_cast<std::size_t>(outcome)];
  }
  // Returns the counter of penalties that began for keys of the rule.
  [[nodiscard]] Tally& penalties(limit::RuleIndex rule) noexcept { return rules_[rule].penalties; }
  [[nodiscard]] const Tally& penalties(limit::RuleIndex rule) const noexcept {
    return rules_[rule].penalties;
  }
  // Returns the counter of the time, in µs, that bodies waited because of the rule's `bandwidth`.
  [[nodiscard]] Tally& bandwidth_waited(limit::RuleIndex rule) noexcept {
    return rules_[rule].bandwidth_waited;
  }
  [[nodiscard]] const Tally& bandwidth_waited(limit::RuleIndex rule) const noexcept {
    return rules_[rule].bandwidth_waited;
  }
  // Returns the counter of the rule's refusals that came from the deny cache, so that weir did not ask Redis.
  [[nodiscard]] Tally& denied_here(limit::RuleIndex rule) noexcept { return rules_[rule].denied_here; }
  [[nodiscard]] const Tally& denied_here(limit::RuleIndex rule) const noexcept {
    return rules_[rule].denied_here;
  }
  [[nodiscard]] Tally& settlements(limit::RuleIndex rule, Settled outcome) noexcept {
    return rules_[rule].settlements[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] const Tally& settlements(limit::RuleIndex rule, Settled outcome) const noexcept {
    return rules_[rule].settlements[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] Tally& messages(limit::RuleIndex rule, MessageOutcome outcome) noexcept {
    return rules_[rule].messages[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] const Tally& messages(limit::RuleIndex rule, MessageOutcome outcome) const noexcept {
    return rules_[rule].messages[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] RouteTallies& route(std::size_t index) noexcept { return routes_[index]; }
  [[nodiscard]] const RouteTallies& route(std::size_t index) const noexcept { return routes_[index]; }
  [[nodiscard]] UpstreamTallies& upstream(std::size_t index) noexcept { return upstreams_[index]; }
  [[nodiscard]] const UpstreamTallies& upstream(std::size_t index) const noexcept {
    return upstreams_[index];
  }
  // Returns the counter of answers that weir went on to read from servers after the client had disconnected.
  // `whole`: true for answers that weir read to their end, false for other answers.
  [[nodiscard]] Tally& abandoned(bool whole) noexcept { return abandoned_[whole ? 1 : 0]; }
  [[nodiscard]] const Tally& abandoned(bool whole) const noexcept { return abandoned_[whole ? 1 : 0]; }
  // The thread that reloads calls these functions before the worker gets the new indexes. make_room() adds
  // counters for new indexes. The other functions clear the counters of an index for reuse. REQUIRES: `shape`
  // has at most kMostRoutes, limit::kMaxRules and kMostUpstreams; the worker no longer uses an index that is
  // cleared.
  void make_room(const Shape& shape);
  void clear_route(std::size_t route) noexcept;
  void clear_rule(limit::RuleIndex rule) noexcept;
  void clear_upstream(std::size_t upstream) noexcept;

  // Each status from 100 to 599 has a counter of its own. Requests without an answer count as kNoStatus. All
  // other statuses share a counter, which is reported as kOtherStatus.
  static constexpr unsigned kNoStatus = 0;
  static constexpr unsigned kFirstStatus = 100;
  static constexpr unsigned kLastStatus = 599;
  static constexpr unsigned kOtherStatus = 600;

  // Ended requests. A request to which no rule applied counts as Admitted.
  TallyOf<Verdict, kVerdicts> verdicts;
  TallyOf<ClientError, kClientErrors> client_errors;
  TallyOf<Handshake, kHandshakes> handshakes;
  TallyOf<TunnelEnd, kTunnelEnds> tunnels;
  TallyOf<Evicted, kEvicted> evicted;
  TallyOf<policy::TokenFault, policy::kTokenFaults> token_faults;
  // requests that waited for the key of their token, by the outcome of the wait
  TallyOf<TokenKeyWaited, kTokenKeyWaited> token_key_waits;
  TallyOf<Goaway, kGoaways> http2_goaways;
  TallyOf<ResetBy, kResetBy> http2_resets;

  Tally connections_accepted;  // connections that weir accepted from clients
  Gauge connections_open;
  Gauge http2_connections_open;  // open HTTP/2 connections; connections_open includes them
  Gauge http2_streams_open;
  Gauge tunnels_open;  // upgraded client connections
  Tally bytes_in;      // bytes from clients after TLS decryption, including heads
  Tally bytes_out;     // bytes to clients before TLS encryption, including heads
  Gauge queue_depth;   // requests that are waiting now for their departure
  // connections that were closed at once, because their address already had the maximum number of connections
  Tally connections_crowded;
  Tally accept_failures;                        // accept() failed: out of descriptors or memory
  std::array<Tally, policy::kPriorities> shed;  // requests that got a 503 because of load, by priority
  Gauge body_memory;                            // bytes in use now for bodies that rules read
  Tally body_memory_refused;                    // bodies for which no memory was left
  Tally rules_exceeded;  // requests that got a 503 because too many rules apply (limit::kMaxCharges)
  Tally queue_crowded;   // requests refused because the client already had its maximum of queued requests
  // requests refused because a request of better priority took their place in the queue
  Tally queue_displaced;
  // requests refused because a client with fewer queued requests took their place in the queue
  Tally queue_levelled;
  // requests refused because they waited for max_wait, or could not depart within max_wait any more
  Tally queue_overdue;
  Tally store_failures;  // decisions, and charges for a stream's events, without an answer of Redis in time
  Tally preflights;      // CORS preflights, for which no rule was asked
  Tally access_log_dropped;  // lines of the access log that weir dropped
  AskTallies ask;            // the questions that weir answered
  // The top clients of each rule. Must be set before the worker runs. Null if top clients are not counted.
  std::unique_ptr<TopClients> top;
  // The refused clients of each rule for which an alert watches single clients.
  const std::unique_ptr<RefusedClients> refused_clients = std::make_unique<RefusedClients>();
  // For requests that weir sent to no server (refusals, errors, and answers of routes with `respond`): the
  // time from the end of the head to the end of the request.
  Histogram local_reply_seconds;
  // the time of each decision, including the round trip to Redis if Redis was asked
  Histogram decision_seconds;

 private:
  static_assert(kStatusSlots == kOtherStatus - kFirstStatus + 2);

  using StatusRow = decltype(RouteTallies::statuses);
  struct RuleTallies {
    std::array<Tally, kRuleOutcomes> decisions;
    std::array<Tally, kSettled> settlements;
    std::array<Tally, kMessageOutcomes> messages;
    Tally denied_here;
    Tally penalties;  // penalties that began
    Tally bandwidth_waited;
  };
  [[nodiscard]] StatusRow& row_of(std::optional<std::size_t> route) const noexcept {
    return route ? routes_[*route].statuses : unrouted_;
  }
  static constexpr std::size_t status_slot(unsigned status) noexcept {
    if (status == kNoStatus) return 0;
    return status >= kFirstStatus && status <= kLastStatus ? status - kFirstStatus + 1 : kStatusSlots - 1;
  }

  Rows<RouteTallies, kMostRoutes> routes_;
  mutable StatusRow unrouted_;  // counts of requests that matched no route
  Rows<RuleTallies, limit::kMaxRules> rules_;
  Rows<UpstreamTallies, kMostUpstreams> upstreams_;
  std::array<Tally, 2> abandoned_;
};

}  // namespace weir::observe
