// ServerGroup holds the servers of an upstream, and the state of each server. All workers share both.
//
// The configuration snapshots that contain the upstream own the group together. Thread-safe. While servers
// work, a request only reads atomics that rarely change. Failures lock a mutex.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/listener.hpp"
#include "weir/upstream/server_control.hpp"
#include "weir/upstream/server_queue.hpp"
#include "weir/upstream/server_state.hpp"
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

// A server's name, and the addresses that the last look-up of the name returned.
struct Server {
  std::string name;
  Addresses addresses;
  friend bool operator==(const Server&, const Server&) = default;
};

// Looks up the addresses of an upstream's servers, and returns the servers. Blocks the calling thread, so it
// must not be called while that thread runs an event loop. An error names the upstream and the server.
[[nodiscard]] base::Result<std::vector<Server>> resolve_servers(const UpstreamSettings& settings);

class ServerGroup {
 public:
  // Called with a log line for each change that OutageLog selects, in the order of the changes. May be called
  // from any thread.
  using Report = std::function<void(const std::string&)>;

  // One server of the group, with its state.
  class Member {
   public:
    Member(const ServerGroup& server_group, Server server, const ServerSettings& settings,
           const Member* older, std::shared_ptr<ServerControl> control);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    // Returns the server's address as a value of Host, for requests without a Host.
    [[nodiscard]] std::string host() const;
    // Returns the server with its present addresses.
    [[nodiscard]] Server server() const { return {name_, *location().addresses}; }
    [[nodiscard]] const ServerSettings& settings() const noexcept { return settings_; }

    // Returns what an operator has changed about the server at run time, and its requests in flight.
    [[nodiscard]] const std::shared_ptr<ServerControl>& control() const noexcept { return control_; }
    // Returns the weight in the configuration, or the weight that an operator has set instead.
    [[nodiscard]] std::uint32_t full_weight() const noexcept { return control_->weight(settings_.weight); }

    // serves() returns true if the server is not ejected. due() returns true if the server is ejected, but a
    // request should try it now. `once`: true if weir cannot send this request again.
    [[nodiscard]] bool serves() const noexcept {
      return known_->ejected_until.load(std::memory_order_relaxed) == 0;
    }
    [[nodiscard]] bool due(base::TimePoint now, bool once = false) const noexcept {
      const auto& from = once ? known_->open_to_all_from : known_->ejected_until;
      return from.load(std::memory_order_relaxed) <= now.time_since_epoch().count();
    }
    [[nodiscard]] bool begin_trial(base::TimePoint now, bool owed = false) noexcept;
    // Returns the server's present share of the requests, in units of 1/kFullWeight.
    [[nodiscard]] std::uint32_t weight(base::TimePoint now) const noexcept;

    // Returns the TLS parameters for a connection to the server that resumes `session`; nullopt if the server
    // uses no TLS.
    [[nodiscard]] std::optional<net::TlsTarget> tls(SSL_SESSION* session) const noexcept;

    // unreachable(), failed() and answered() record the result of a request; see ServerHealth. `fault`: the
    // reason, as text for the log; empty if unknown.
    void unreachable(base::TimePoint now, std::string_view fault = {}) noexcept;
    void failed(base::TimePoint sent, base::TimePoint now) noexcept;
    void answered(base::TimePoint sent, base::TimePoint now) noexcept {
      if (suspect()) note_answer(sent, now);
    }
    // Returns true if recording an answer would change the server's state.
    [[nodiscard]] bool suspect() const noexcept { return known_->suspect.load(std::memory_order_relaxed); }

    // The server's present addresses. A connect that is under way keeps the addresses with which it began.
    struct Location {
      std::shared_ptr<const Addresses> addresses;
      std::size_t first;              // index of the address to try first
      std::uint32_t address_changes;  // how many times the addresses have changed so far
    };
    [[nodiscard]] Location location() const;
    // Makes the next connect begin with the address of index `first` (net::Dial::next()). `then`: the
    // location() that the last connect used. Does nothing if the server's addresses have changed since that
    // location() was read.
    void begin_with(std::size_t first, const Location& then) noexcept;
    [[nodiscard]] std::uint32_t address_changes() const noexcept {
      return known_->address_changes.load(std::memory_order_relaxed);
    }
    // Replaces the addresses of the server's name; there must be at least one. Running connects continue with
    // the old addresses.
    void move_to(Addresses addresses, base::TimePoint now);

    // Records the result of a probe. `fault`: the reason of a failure, as text for the log.
    void probed(bool good, std::string_view fault, base::TimePoint now) noexcept;

    // Adds a request to the requests in flight (`max_in_flight`) and takes a unit of `limit`. Returns nullopt
    // on success, otherwise the time after which to try again.
    [[nodiscard]] std::optional<base::Duration> enter(base::TimePoint now) noexcept;
    // Refunds the unit of `limit` of a request that did not reach the server.
    void give_back_unit(base::TimePoint now) noexcept;
    void leave() noexcept {
      if (settings_.max_in_flight == 0) return;
      --known_->in_flight;
      server_group_.queue_->freed();
    }

    // Returns true if enter() would succeed. Changes nothing.
    [[nodiscard]] bool would_enter(base::TimePoint now) const noexcept;
    // Like would_enter(), but checks `max_in_flight` only.
    [[nodiscard]] bool has_room() const noexcept {
      return settings_.max_in_flight == 0 ||
             known_->in_flight.load(std::memory_order_relaxed) < settings_.max_in_flight;
    }

    [[nodiscard]] std::uint64_t ejections() const;
    // Returns the number of failed connects and failed requests.
    [[nodiscard]] std::uint64_t failures() const;

   private:
    void note_answer(base::TimePoint sent, base::TimePoint now) noexcept;
    [[nodiscard]] std::optional<base::Duration> spend(base::TimePoint now) noexcept;
    void publish(ServerHealth::Change change, base::TimePoint now, std::string_view why) noexcept;
    [[nodiscard]] bool is_logged(ServerHealth::Change change, base::TimePoint now) noexcept;
    [[nodiscard]] std::string line_of(ServerHealth::Change change, base::TimePoint now, std::string_view why);

    const ServerGroup& server_group_;
    const std::string name_;
    const ServerSettings settings_;
    const std::shared_ptr<ServerState> known_;  // shared with older groups, whose requests may still run
    // the bucket of the server's `limit`, protected by known_->mutex; shared with older groups that have the
    // same `limit`
    const std::shared_ptr<limit::Cell> spent_;
    // also shared with older groups, even if the group starts with a new ServerState
    const std::shared_ptr<ServerControl> control_;
  };

  // REQUIRES one element of `servers` for each server in `settings`. Throws if TLS cannot be set up as
  // configured. `older`: the group of the same upstream before a reload:
  // * A server whose name is in both groups keeps what operators changed.
  // * If its addresses are the same, too, it keeps its state, unless the reload adds or removes `health`.
  // * With the state, it keeps the number of requests in flight, which `older` counted only if the server had
  //   `max_in_flight` there. If `limit` is the same, it also keeps the used units of `limit`.
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
  // Returns the server with this name; null if the upstream has none.
  [[nodiscard]] const Member* find(std::string_view name) const noexcept;
  // Returns true if operators have drained all servers.
  [[nodiscard]] bool is_drained() const noexcept;
  // Returns the candidates (one bit for each server) whose ServerSettings::priority is smallest.
  [[nodiscard]] std::uint64_t preferred(std::uint64_t candidates) const noexcept;

  // Returns the queue of requests that wait for room. The groups before and after a reload share it.
  [[nodiscard]] ServerQueue& queue() const noexcept { return *queue_; }

  // Records that the upstream asked for a pause until `at`. A call cannot shorten an earlier pause. The group
  // itself does not hold back requests: a caller whose route honours Retry-After must check paused_until().
  void pause_until(base::TimePoint at) noexcept;
  [[nodiscard]] base::TimePoint paused_until() const noexcept {
    return base::TimePoint{base::Duration{paused_until_.load(std::memory_order_relaxed)}};
  }

 private:
  const UpstreamSettings settings_;
  const Report report_;
  const net::TlsContext tls_;  // null if no server uses TLS
  const std::shared_ptr<ServerQueue> queue_;
  const bool has_priorities_;   // true: the servers do not all have the same ServerSettings::priority
  std::deque<Member> members_;  // a deque, because members cannot be moved
  std::atomic<base::Duration::rep> paused_until_{0};  // in microseconds since the epoch
};

}  // namespace weir::upstream
