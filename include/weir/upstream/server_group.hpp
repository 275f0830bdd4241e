// The servers of an upstream, and the state of each server that all workers share.
//
// Made once for all workers and outlives them. Thread-safe. Each request only reads an atomic that rarely
// changes; only failures take a lock.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/listener.hpp"
#include "weir/upstream/outage_log.hpp"
#include "weir/upstream/server_health.hpp"
#include "weir/upstream/server_queue.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::upstream {

// The addresses of one server, to be tried in turn; empty: its name could not be looked up yet.
using Addresses = std::vector<net::RawEndpoint>;

// A server with the addresses that its name had at the last look-up.
struct Server {
  std::string name;
  Addresses addresses;
  friend bool operator==(const Server&, const Server&) = default;
};

// Looks up the addresses of an upstream's servers. Blocks, so it must be called only at start. An error names
// the upstream and the server.
[[nodiscard]] base::Result<std::vector<Server>> resolve_servers(const UpstreamSettings& settings);

class ServerGroup {
 public:
  // Called with a line for each change that OutageLog logs, in the order of the changes. Any thread may call
  // it.
  using Report = std::function<void(const std::string&)>;

  // One server.
  class Member {
   public:
    Member(const ServerGroup& server_group, Server server, const ServerSettings& settings,
           const Member* older);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    // Returns the server's name for the Host field.
    [[nodiscard]] std::string host() const;
    // Returns the server with its present addresses.
    [[nodiscard]] Server server() const { return {name_, *location().addresses}; }
    [[nodiscard]] const ServerSettings& settings() const noexcept { return settings_; }

    // serves() returns true if the server gets requests. due() returns true if it does not, but should be
    // tried now. `once`: by a request that cannot be sent again.
    [[nodiscard]] bool serves() const noexcept {
      return known_->out_until.load(std::memory_order_relaxed) == 0;
    }
    [[nodiscard]] bool due(base::TimePoint now, bool once = false) const noexcept {
      const auto& from = once ? known_->open_to_all_from : known_->out_until;
      return from.load(std::memory_order_relaxed) <= now.time_since_epoch().count();
    }
    [[nodiscard]] bool begin_trial(base::TimePoint now, bool owed = false) noexcept;
    // Returns the server's share of the requests, in units of 1/kFullWeight.
    [[nodiscard]] std::uint32_t weight(base::TimePoint now) const noexcept;

    // Returns the parameters of TLS to the server, to resume `session`; nullopt if the server uses no TLS.
    [[nodiscard]] std::optional<net::TlsTarget> tls(SSL_SESSION* session) const noexcept;

    // These functions note the result of a request; see ServerHealth. `fault`: a text for the log; empty if
    // nothing is known.
    void unreachable(base::TimePoint now, std::string_view fault = {}) noexcept;
    void failed(base::TimePoint sent, base::TimePoint now) noexcept;
    void answered(base::TimePoint sent, base::TimePoint now) noexcept {
      if (suspect()) note_answer(sent, now);
    }
    // Returns true if an answer would change anything.
    [[nodiscard]] bool suspect() const noexcept { return known_->suspect.load(std::memory_order_relaxed); }

    // The server's present addresses. Shared, because a running connect keeps the addresses it began with.
    struct Location {
      std::shared_ptr<const Addresses> addresses;
      std::size_t first;    // index of the address to begin with
      std::uint32_t moves;  // number of changes of the addresses so far
    };
    [[nodiscard]] Location location() const;
    // Makes the next connect begin with the address of index `first` (net::Dial::next()). `then`: the
    // location() with which the present connect began. Does nothing if the addresses have changed since.
    void begin_with(std::size_t first, const Location& then) noexcept;
    [[nodiscard]] std::uint32_t moves() const noexcept {
      return known_->moves.load(std::memory_order_relaxed);
    }
    // Replaces the addresses of the server's name; at least one is required. Running connects keep the old
    // ones.
    void move_to(Addresses addresses, base::TimePoint now);

    // Notes the result of a probe. `fault`: what is wrong, as text for the log.
    void probed(bool good, std::string_view fault, base::TimePoint now) noexcept;

    // Takes one of the `max_in_flight` places and a unit of `limit`. Returns nullopt on success, otherwise
    // how long to wait.
    [[nodiscard]] std::optional<base::Duration> enter(base::TimePoint now) noexcept;
    // Returns the unit of `limit` of a request that did not reach the server.
    void give_back_unit(base::TimePoint now) noexcept;
    void leave() noexcept {
      if (settings_.max_in_flight == 0) return;
      --known_->in_flight;
      server_group_.queue_->freed();
    }

    // Returns true if enter() would succeed. Takes nothing.
    [[nodiscard]] bool would_enter(base::TimePoint now) const noexcept;
    // Like would_enter(), but checks `max_in_flight` only.
    [[nodiscard]] bool has_room() const noexcept {
      return settings_.max_in_flight == 0 ||
             known_->in_flight.load(std::memory_order_relaxed) < settings_.max_in_flight;
    }

    [[nodiscard]] std::uint64_t ejections() const;

   private:
    void note_answer(base::TimePoint sent, base::TimePoint now) noexcept;
    [[nodiscard]] std::optional<base::Duration> spend(base::TimePoint now) noexcept;
    void publish(ServerHealth::Change change, base::TimePoint now, std::string_view why) noexcept;
    [[nodiscard]] bool is_logged(ServerHealth::Change change, base::TimePoint now) noexcept;
    [[nodiscard]] std::string line_of(ServerHealth::Change change, base::TimePoint now, std::string_view why);

    const ServerGroup& server_group_;
    const std::string name_;
    const ServerSettings settings_;
    // The state of a server that successive groups (before and after a reload) share.
    struct Known {
      explicit Known(Addresses at_first);

      // Copies of values of `server_health` for readers without the lock. In microseconds since the epoch.
      alignas(64) std::atomic<base::Duration::rep> out_until{0};
      std::atomic<base::Duration::rep> open_to_all_from{0};
      std::atomic<base::Duration::rep> back_since{0};
      std::atomic<bool> suspect{false};
      std::atomic<std::uint32_t> moves{0};                  // number of changes of `addresses`
      alignas(64) std::atomic<std::uint32_t> in_flight{0};  // counted only if bounded
      std::mutex mutex;
      ServerHealth server_health;                  // under the mutex
      OutageLog outages;                           // under the mutex
      std::uint64_t random;                        // under the mutex
      limit::Cell spent;                           // of settings_.limit, under the mutex
      std::shared_ptr<const Addresses> addresses;  // under the mutex
      std::size_t first = 0;                       // index into `addresses`, under the mutex
    };
    const std::shared_ptr<Known> known_;  // shared with older groups, which may still have requests
  };

  // REQUIRES as many servers as the settings have. `older`: the same upstream before a reload. Servers that
  // remain keep their state, and requests of both groups count towards `max_in_flight`. Throws if TLS cannot
  // be set up as configured.
  ServerGroup(UpstreamSettings settings, std::vector<Server> servers, Report report = {},
              const ServerGroup* older = nullptr);
  ServerGroup(const ServerGroup&) = delete;
  ServerGroup& operator=(const ServerGroup&) = delete;

  [[nodiscard]] const UpstreamSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] Member& member(std::size_t at) noexcept { return members_[at]; }
  [[nodiscard]] const Member& member(std::size_t at) const noexcept { return members_[at]; }

  // Returns the servers with their present addresses.
  [[nodiscard]] std::vector<Server> servers() const;

  // Returns the queue of requests that found no server with room. Shared with older groups.
  [[nodiscard]] ServerQueue& queue() const noexcept { return *queue_; }

  // Notes that the upstream asked for a pause until `at`. A call cannot shorten an earlier pause. The group
  // itself stops no requests; the caller checks for a pause if the route honours Retry-After.
  void pause_until(base::TimePoint at) noexcept;
  [[nodiscard]] base::TimePoint paused_until() const noexcept {
    return base::TimePoint{base::Duration{paused_until_.load(std::memory_order_relaxed)}};
  }

 private:
  const UpstreamSettings settings_;
  const Report report_;
  const net::TlsContext tls_;  // null if no server uses TLS
  const std::shared_ptr<ServerQueue> queue_;
  std::deque<Member> members_;                        // a deque, because members cannot be moved
  std::atomic<base::Duration::rep> paused_until_{0};  // in microseconds since the epoch
};

}  // namespace weir::upstream
