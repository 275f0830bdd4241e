// Connections to the servers of one upstream, kept and chosen by one worker.
//
// A Pool belongs to its worker and outlives every Lease of it.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::upstream {

class Pool;

// A server with the addresses that its name stood for at start. Immutable, shared by all workers.
struct Server {
  std::string name;
  std::vector<net::RawEndpoint> addresses;
};

// The servers of an upstream, resolved. Blocks; for start-up. An error names the upstream and the server.
[[nodiscard]] base::Result<std::vector<Server>> resolve_servers(const UpstreamSettings& settings);

// Whether a connection failed because this host lacks what it takes (descriptors, ports, memory): that says
// nothing of the server.
[[nodiscard]] bool is_shortage(const net::ErrorCode& ec) noexcept;

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
  [[nodiscard]] bool connected() const noexcept { return stream_ != nullptr && stream_->is_open(); }
  // The connection had served another request before.
  [[nodiscard]] bool reused() const noexcept { return reused_; }
  [[nodiscard]] const std::string& server_name() const noexcept;
  [[nodiscard]] std::size_t server() const noexcept { return server_; }
  // REQUIRES connected().
  [[nodiscard]] net::Stream& stream() noexcept { return *stream_; }

  // Opens a connection to the chosen server, trying its addresses in turn. A failure puts the server aside
  // for a moment, unless it is that of cancel(): whether the server was too slow or the client left, the
  // caller knows.
  [[nodiscard]] net::Task<net::ErrorCode> connect();
  // The server is passed over for a moment as long as there are others.
  void put_aside() noexcept;
  // Whether a connection that waited in the pool was closed meanwhile by the server. Costs a system call.
  [[nodiscard]] bool went_stale() noexcept;
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
  std::unique_ptr<net::Stream> stream_;
  bool reused_ = false;
  bool keep_ = false;
};

class Pool final : private net::Watched {
 public:
  // REQUIRES at most kMaxServers of them. `servers` and `settings` outlive the pool.
  Pool(net::Executor executor, net::Watchdog& watchdog, const UpstreamSettings& settings,
       const std::vector<Server>& servers);

  // Chooses a server by the upstream's balance, passing over those in `tried` (a bit for each server) and, as
  // long as there are others, those that just failed. With an idle connection where the server has one and
  // `fresh` is not asked. An empty lease when every server was tried.
  [[nodiscard]] Lease lease(std::uint64_t tried = 0, bool fresh = false);

  [[nodiscard]] const UpstreamSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }

 private:
  friend class Lease;
  struct Idle {
    std::unique_ptr<net::Stream> stream;
    std::uint64_t since;  // in ticks
  };
  struct Slot {  // what this worker knows of a server
    const Server* server;
    std::vector<Idle> idle;  // the most recently used last
    std::size_t in_flight = 0;
    std::uint64_t aside_until = 0;  // in ticks
  };

  void on_late() noexcept override {}
  void on_tick() noexcept override;
  [[nodiscard]] std::uint64_t candidates(std::uint64_t tried) const noexcept;
  [[nodiscard]] std::size_t choose(std::uint64_t candidates) noexcept;
  [[nodiscard]] std::size_t least_in_flight(std::uint64_t candidates) const noexcept;
  [[nodiscard]] std::size_t any_of(std::uint64_t candidates) noexcept;
  [[nodiscard]] std::uint64_t random() noexcept;

  net::Executor executor_;
  const UpstreamSettings& settings_;
  std::vector<Slot> slots_;
  std::uint64_t now_ = 0;  // in ticks
  std::size_t turn_ = 0;   // the server after the one chosen last
  std::uint64_t random_;
};

}  // namespace weir::upstream
