// Connections to the servers of one upstream, kept and chosen by one worker.
//
// A Pool belongs to its worker and outlives every Lease of it.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/upstream/balancer.hpp"
#include "weir/upstream/fleet.hpp"
#include "weir/upstream/retry.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::net {
class Dial;
}

namespace weir::upstream {

class Pool;

// Whether a connection failed because this host lacks what it takes (descriptors, ports, memory, a place in
// the queue of a unix socket): that does not say that the server is away.
[[nodiscard]] bool is_shortage(const net::ErrorCode& ec) noexcept;

// What a request asks for.
struct Wanted {
  base::TimePoint now{};
  std::uint64_t tried = 0;  // servers to be passed over, a bit for each
  bool fresh = false;       // no connection that waits
  bool once = false;        // it cannot be sent again: not to be spent on a server that says nothing
  bool owed = false;        // its client still owes some of its body
  std::uint64_t word = 0;   // under Balance::Hash: the name of the client
};

// A connection while one exchange uses it. Destroying the lease gives the server's place back; the connection
// goes back to the pool only after keep().
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  // A server was chosen.
  [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }
  // Of a lease without one: how long to stay away, because those that are left have no room. Absent: none is
  // left.
  [[nodiscard]] const std::optional<base::Duration>& room_after() const noexcept { return room_after_; }
  // Likewise: it may be sooner, whenever a request in flight ends.
  [[nodiscard]] bool room_at_any_time() const noexcept { return room_at_any_time_; }
  [[nodiscard]] bool connected() const noexcept { return stream_ != nullptr && stream_->is_open(); }
  // The connection had served another request before.
  [[nodiscard]] bool reused() const noexcept { return reused_; }
  [[nodiscard]] const std::string& server_name() const noexcept;
  [[nodiscard]] std::size_t server() const noexcept { return server_; }
  // REQUIRES connected().
  [[nodiscard]] net::Stream& stream() noexcept { return *stream_; }
  // Since the connection was lent or begun, the server's name has come to stand for other addresses: what
  // became of it says nothing of the server as it is now.
  [[nodiscard]] bool moved() const noexcept { return moves_ != member().moves(); }
  // Whom to tell what came of the request. REQUIRES a server.
  [[nodiscard]] Fleet::Member& member() const noexcept;

  // Opens a connection to the chosen server, at any of its addresses; it begins with `preamble`. `patience`:
  // after which whoever waits cancels it.
  // `fault`: what failed beyond the connection itself, in words. It and `preamble` outlive the task.
  [[nodiscard]] net::Task<net::ErrorCode> connect(std::string_view preamble, base::Duration patience,
                                                  std::string& fault);
  // The exchange is over and both sides are in step: the connection can serve another.
  void keep() noexcept { keep_ = true; }
  // Ends whatever waits on the connection.
  void cancel() noexcept;

 private:
  friend class Pool;
  Lease(Pool& pool, std::size_t server) noexcept : pool_(&pool), server_(server) {}
  void release() noexcept;

  Pool* pool_ = nullptr;
  std::size_t server_ = 0;
  std::uint32_t moves_ = 0;  // of the server, until then
  std::unique_ptr<net::Stream> stream_;
  net::Dial* dial_ = nullptr;  // in the frame of connect(), while it waits
  std::optional<base::Duration> room_after_;
  bool room_at_any_time_ = false;
  bool reused_ = false;
  bool keep_ = false;
};

class Pool final : private net::Watched {
 public:
  // REQUIRES at most kMaxServers of them. `fleet` outlives the pool.
  Pool(net::Executor executor, net::Watchdog& watchdog, Fleet& fleet);

  // Whether any but `tried` (a bit for each) serves and would let a request in, by `max_in_flight` and
  // `limit`.
  [[nodiscard]] bool others_serve(std::uint64_t tried, base::TimePoint now) const noexcept;
  // Chooses a server by the upstream's balance among those that serve, were not tried, and have room; where
  // none serves, among all that were not tried. One that was out and whose time is over is tried at once, by
  // whoever risks nothing with it; where the upstream has `health`, by that alone.
  // With an idle connection where the server has one that is neither closed nor has spoken unasked, unless a
  // fresh one is wanted.
  [[nodiscard]] Lease lease(const Wanted& wanted);

  [[nodiscard]] const UpstreamSettings& settings() const noexcept { return fleet_.settings(); }
  [[nodiscard]] std::size_t size() const noexcept { return idle_.size(); }
  [[nodiscard]] Fleet& fleet() noexcept { return fleet_; }
  [[nodiscard]] RetryBudget& retries() noexcept { return retries_; }
  [[nodiscard]] std::uint64_t random() noexcept;

 private:
  friend class Lease;
  struct Idle {
    std::unique_ptr<net::Stream> stream;
    std::uint64_t since;  // in ticks
  };

  void on_late() noexcept override {}
  void on_tick() noexcept override;
  struct Choice {            // a bit for each server
    std::uint64_t from = 0;  // those to choose among
    std::uint64_t due = 0;   // those that are out and should be tried
  };
  [[nodiscard]] Choice look(const Wanted& wanted) noexcept;
  [[nodiscard]] std::optional<std::size_t> take_trial(const Choice& choice, const Wanted& wanted) noexcept;
  [[nodiscard]] std::uint64_t word(const Wanted& wanted) noexcept;
  [[nodiscard]] Lease lend(std::size_t server, bool fresh);
  void follow(std::size_t server) noexcept;

  net::Executor executor_;
  net::Watchdog& watchdog_;
  Fleet& fleet_;
  Balancer balancer_;
  std::vector<Load> loads_;                // of each server; in_flight: of this worker
  std::vector<std::vector<Idle>> idle_;    // likewise; the most recently used last
  std::vector<std::uint32_t> moves_;       // likewise: what waits there leads where it is after so many
  std::vector<net::TlsSession> sessions_;  // likewise, of the last that was told of; null: none
  std::uint64_t now_ = 0;                  // in ticks
  std::uint64_t random_;
  RetryBudget retries_;
};

}  // namespace weir::upstream
