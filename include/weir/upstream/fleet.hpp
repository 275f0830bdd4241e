// The servers of an upstream, and what all workers know of them together.
//
// Made once for all workers and outlives them. Any thread may ask and tell: what every request asks is one
// read of an atomic that hardly ever changes, and only what goes wrong takes a lock.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/listener.hpp"
#include "weir/upstream/condition.hpp"
#include "weir/upstream/outage_log.hpp"
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

// Of one server, to be tried in turn; empty: its name could not be looked up yet.
using Addresses = std::vector<net::RawEndpoint>;

// A server with the addresses that its name stood for when it was looked up.
struct Server {
  std::string name;
  Addresses addresses;
  friend bool operator==(const Server&, const Server&) = default;
};

// The servers of an upstream, resolved. Blocks; for start-up. An error names the upstream and the server.
[[nodiscard]] base::Result<std::vector<Server>> resolve_servers(const UpstreamSettings& settings);

class Fleet {
 public:
  // Gets a line for each change that OutageLog lets through, in the order in which they came about; from any
  // thread.
  using Report = std::function<void(const std::string&)>;

  // One server.
  class Member {
   public:
    Member(const Fleet& fleet, Server server, const ServerSettings& settings, const Member* older);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    // As Host names it.
    [[nodiscard]] std::string host() const;
    // With the addresses that its name stands for now.
    [[nodiscard]] Server server() const { return {name_, *place().addresses}; }
    [[nodiscard]] const ServerSettings& settings() const noexcept { return settings_; }

    // Whether it gets requests. `due`: it does not, but somebody should try it again now; `once`: by a
    // request that cannot be sent again.
    [[nodiscard]] bool serves() const noexcept {
      return known_->out_until.load(std::memory_order_relaxed) == 0;
    }
    [[nodiscard]] bool due(base::TimePoint now, bool once = false) const noexcept {
      const auto& from = once ? known_->open_to_all_from : known_->out_until;
      return from.load(std::memory_order_relaxed) <= now.time_since_epoch().count();
    }
    [[nodiscard]] bool begin_trial(base::TimePoint now, bool owed = false) noexcept;
    // Its share, in units of 1/kFullWeight.
    [[nodiscard]] std::uint32_t weight(base::TimePoint now) const noexcept;

    // How to speak TLS with it, beginning with `session`; nullopt: it speaks none.
    [[nodiscard]] std::optional<net::TlsTarget> tls(SSL_SESSION* session) const noexcept;

    // What came of a request; see Condition. `fault`: in words for the log; empty: nothing is known.
    void unreachable(base::TimePoint now, std::string_view fault = {}) noexcept;
    void failed(base::TimePoint sent, base::TimePoint now) noexcept;
    void answered(base::TimePoint sent, base::TimePoint now) noexcept {
      if (suspect()) note_answer(sent, now);
    }
    // Whether an answer would change anything.
    [[nodiscard]] bool suspect() const noexcept { return known_->suspect.load(std::memory_order_relaxed); }

    // Where it is now. Shared, for a connect that is under way goes on with those that it began with.
    struct Place {
      std::shared_ptr<const Addresses> addresses;
      std::size_t first;    // of them, to begin with
      std::uint32_t moves;  // how often it had moved
    };
    [[nodiscard]] Place place() const;
    // The next connect is to begin with the address of that number (net::Dial::next()); `then`: where it was
    // when this one began. Nothing where it has moved since.
    void begin_with(std::size_t first, const Place& then) noexcept;
    [[nodiscard]] std::uint32_t moves() const noexcept {
      return known_->moves.load(std::memory_order_relaxed);
    }
    // Its name stands for these from now on; at least one. What is under way ends where it began.
    void move_to(Addresses addresses, base::TimePoint now);

    // It was asked how it is; `fault`: what is wrong, in words for the log.
    void probed(bool good, std::string_view fault, base::TimePoint now) noexcept;

    // Takes one of the places that `max_in_flight` allows, and a unit of `limit`. Where there is none: how
    // long to stay away.
    [[nodiscard]] std::optional<base::Duration> enter(base::TimePoint now) noexcept;
    // Of a request that did not reach it: the unit of `limit` that it took when it came in.
    void give_back_unit(base::TimePoint now) noexcept;
    void leave() noexcept {
      if (settings_.max_in_flight == 0) return;
      --known_->in_flight;
      fleet_.queue_->freed();
    }

    // Whether enter() would let one in; nothing is taken.
    [[nodiscard]] bool would_enter(base::TimePoint now) const noexcept;
    // Likewise, as far as `max_in_flight` goes.
    [[nodiscard]] bool has_room() const noexcept {
      return settings_.max_in_flight == 0 ||
             known_->in_flight.load(std::memory_order_relaxed) < settings_.max_in_flight;
    }

    [[nodiscard]] std::uint64_t ejections() const;

   private:
    void note_answer(base::TimePoint sent, base::TimePoint now) noexcept;
    [[nodiscard]] std::optional<base::Duration> spend(base::TimePoint now) noexcept;
    void publish(Condition::Change change, base::TimePoint now, std::string_view why) noexcept;
    [[nodiscard]] bool is_logged(Condition::Change change, base::TimePoint now) noexcept;
    [[nodiscard]] std::string line_of(Condition::Change change, base::TimePoint now, std::string_view why);

    const Fleet& fleet_;
    const std::string name_;
    const ServerSettings settings_;
    // What all fleets know of it that it was in, one after another.
    struct Known {
      explicit Known(Addresses at_first);

      // Of condition, for those who do not lock. In microseconds since the epoch.
      alignas(64) std::atomic<base::Duration::rep> out_until{0};
      std::atomic<base::Duration::rep> open_to_all_from{0};
      std::atomic<base::Duration::rep> back_since{0};
      std::atomic<bool> suspect{false};
      std::atomic<std::uint32_t> moves{0};                  // changes of `addresses`
      alignas(64) std::atomic<std::uint32_t> in_flight{0};  // counted where it is bounded
      std::mutex mutex;
      Condition condition;                         // under the mutex
      OutageLog outages;                           // likewise
      std::uint64_t random;                        // likewise
      limit::Cell spent;                           // of settings_.limit, likewise
      std::shared_ptr<const Addresses> addresses;  // likewise
      std::size_t first = 0;                       // likewise, of those
    };
    const std::shared_ptr<Known> known_;  // shared by those fleets: requests of an older one may be under way
  };

  // REQUIRES as many servers as the settings have. `older`: the same upstream as it was before a reload; what
  // is known of servers that stay goes on, and their places are counted together. Throws where TLS cannot be
  // spoken as they say.
  Fleet(UpstreamSettings settings, std::vector<Server> servers, Report report = {},
        const Fleet* older = nullptr);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  [[nodiscard]] const UpstreamSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] Member& member(std::size_t at) noexcept { return members_[at]; }
  [[nodiscard]] const Member& member(std::size_t at) const noexcept { return members_[at]; }

  // As they are now.
  [[nodiscard]] std::vector<Server> servers() const;

  // Of requests that find no server with room; one with that of an older fleet.
  [[nodiscard]] ServerQueue& queue() const noexcept { return *queue_; }

  // The upstream asked to be left alone until then; the latest instant counts. For those who honour that.
  void pause_until(base::TimePoint at) noexcept;
  [[nodiscard]] base::TimePoint paused_until() const noexcept {
    return base::TimePoint{base::Duration{paused_until_.load(std::memory_order_relaxed)}};
  }

 private:
  const UpstreamSettings settings_;
  const Report report_;
  const net::TlsContext tls_;  // null where no server speaks it
  const std::shared_ptr<ServerQueue> queue_;
  std::deque<Member> members_;                        // which cannot be moved
  std::atomic<base::Duration::rep> paused_until_{0};  // in microseconds since the epoch
};

}  // namespace weir::upstream
