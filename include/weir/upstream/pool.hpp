// Pool owns one worker's connections to the servers of one upstream, and chooses the server for each request.
//
// Belongs to its worker, whose snapshots own the pool. Must outlive all Lease objects that it returned.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/upstream/balancer.hpp"
#include "weir/upstream/retry.hpp"
#include "weir/upstream/server_group.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::net {
class Dial;
}

namespace weir::upstream {

class Http2Connections;
class Http2ServerStream;
class Pool;

// Returns true if a connection failed because this host lacks descriptors, ports, memory, or room in the
// queue of a unix socket. The server may be healthy.
[[nodiscard]] bool is_shortage(const net::ErrorCode& ec) noexcept;

// Returns true if a connection failed because the process or the system has no descriptor left.
[[nodiscard]] bool is_out_of_descriptors(const net::ErrorCode& ec) noexcept;

// Returns true if the server accepts no requests on its HTTP/2 connections. The server states this in its
// SETTINGS, or by a GOAWAY on each new connection.
[[nodiscard]] bool is_refusal(const net::ErrorCode& ec) noexcept;

// How an exchange with a server can break.
enum class ExchangeFailure : std::uint8_t {
  Connection,  // the connection failed or ended
  Reset,       // the server reset the stream of an HTTP/2 connection
  Refusal,     // the server has stated that it did not process the request (RFC 9113 §8.7)
};

// A request's requirements for the server and the connection that Pool::lease() chooses.
struct LeaseRequest {
  base::TimePoint now{};
  std::uint64_t tried = 0;  // servers to skip; one bit for each server
  bool fresh = false;       // true: the request requires a new connection
  // True: weir cannot send the request again. lease() then avoids servers that may not answer, and checks the
  // socket of an idle connection before it uses the connection.
  bool once = false;
  bool owed = false;              // true: the client has not sent the whole body of the request
  const void* avoid = nullptr;    // an HTTP/2 connection that must not be used: Lease::http2_connection()
  std::uint64_t client_hash = 0;  // under Balance::Hash: the client's name
};

// One server in use by one exchange (a request and its answer). A lease counts as one of the server's
// requests in flight, and has a connection, or a stream of an HTTP/2 connection.
//
// The destructor subtracts the lease from the requests in flight. If keep() was called, the destructor
// returns the connection to the pool; otherwise it closes the connection. The destructor also resets an
// HTTP/2 stream that is not complete.
class Lease {
 public:
  Lease() noexcept;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  // Returns true if a server was chosen.
  [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }
  // For a lease without a server: returns the time until an untried server has room for the request; nullopt
  // if every server was tried.
  [[nodiscard]] const std::optional<base::Duration>& room_after() const noexcept { return room_after_; }
  // For a lease without a server: returns true if room may become free before room_after(), because a request
  // in flight ends.
  [[nodiscard]] bool room_at_any_time() const noexcept { return room_at_any_time_; }
  [[nodiscard]] bool connected() const noexcept;
  // Returns how many connections connect() has opened. If several requests waited for the same HTTP/2
  // connection, the lease of only one request counts the connection.
  [[nodiscard]] unsigned opened() const noexcept { return opened_; }
  // Returns true if the connection has served another request before.
  [[nodiscard]] bool reused() const noexcept { return reused_; }
  // Returns true if the server may have closed the connection as idle before the request arrived. An HTTP/2
  // connection is idle if it has no other open request. REQUIRES that the connection broke without an answer.
  [[nodiscard]] bool may_have_met_idle_close() const noexcept;
  [[nodiscard]] const std::string& server_name() const noexcept;
  [[nodiscard]] std::size_t server() const noexcept { return server_; }
  // Returns the connection, or the stream of an HTTP/2 connection. REQUIRES connected().
  [[nodiscard]] net::ByteStream& stream() noexcept;
  // Returns the connection. REQUIRES connected(), and that the server speaks HTTP/1.1 on it.
  [[nodiscard]] net::Stream& connection() noexcept { return *stream_; }
  [[nodiscard]] bool is_http2() const noexcept { return http2_ != nullptr; }
  // Returns the address of the HTTP/2 connection object, for LeaseRequest::avoid. Returns null if the lease
  // has no HTTP/2 connection.
  [[nodiscard]] const void* http2_connection() const noexcept;
  // Returns how the server ended the stream before the end of the response. REQUIRES that the stream broke.
  [[nodiscard]] ExchangeFailure broke_by() const noexcept;
  // Returns true if the server's addresses have changed since the connection was leased or opened. A failure
  // of the connection then says nothing about the server's present state.
  [[nodiscard]] bool moved() const noexcept { return address_changes_ != member().address_changes(); }
  // Returns the server's entry in the group, to which the caller must report the results of the exchange.
  // REQUIRES that a server was chosen.
  [[nodiscard]] ServerGroup::Member& member() const noexcept;

  // Opens a connection to the chosen server, at any of its addresses. The connection begins with
  // `proxy_header`. `patience`: how long the caller waits before it cancels the task. If TLS fails, `fault`
  // receives the reason. `fault` and `proxy_header` must outlive the task.
  [[nodiscard]] net::Task<net::ErrorCode> connect(std::string_view proxy_header, base::Duration patience,
                                                  std::string& fault);
  // Makes the destructor return the connection to the pool. Must be called only after the whole request was
  // sent and the whole response was received.
  void keep() noexcept { keep_ = true; }
  // Makes all waits on the connection end with an error.
  void cancel() noexcept;

 private:
  friend class Pool;
  Lease(Pool& pool, std::size_t server) noexcept;
  void release() noexcept;
  [[nodiscard]] net::Task<net::ErrorCode> connect_http1(std::string_view proxy_header,
                                                        base::Duration patience, std::string& fault);
  [[nodiscard]] net::Task<net::ErrorCode> connect_http2(std::string& fault);

  Pool* pool_ = nullptr;
  std::size_t server_ = 0;
  // The value of Member::address_changes() when the connection was leased or opened.
  std::uint32_t address_changes_ = 0;
  std::unique_ptr<net::Stream> stream_;
  std::unique_ptr<Http2ServerStream> http2_;
  net::Dial* dial_ = nullptr;  // points into the frame of connect() while connect() waits
  const void* avoid_ = nullptr;
  std::optional<base::Duration> room_after_;
  unsigned opened_ = 0;
  bool room_at_any_time_ = false;
  bool reused_ = false;
  bool keep_ = false;
};

class Pool final : private net::Watched {
 public:
  // REQUIRES at most kMaxServers servers. `server_group` must outlive the pool.
  Pool(net::Executor executor, net::Watchdog& watchdog, ServerGroup& server_group);
  ~Pool();

  // Returns true if a server that is not in `tried` (one bit for each server) is in service and has room.
  [[nodiscard]] bool others_serve(std::uint64_t tried, base::TimePoint now) const noexcept;
  // Chooses a server by the upstream's balance.
  // * Candidates are servers that are in service, were not tried, and have room. If none is in service, all
  //   servers that were not tried are candidates. Drained servers are never candidates.
  // * An ejected server whose ejection time has passed comes first, if the request may try it
  //   (Member::due()). With `health`, only probes try ejected servers.
  // * The lease gets an idle connection, if the pool has one and the request permits it. The pool drops idle
  //   connections that the server has closed or written to. The event loop reports these connections. If a
  //   connection became idle after the loop last asked the kernel for events, the pool checks the socket.
  [[nodiscard]] Lease lease(const LeaseRequest& wanted);

  // Returns the number of idle HTTP/1.1 connections.
  [[nodiscard]] std::size_t idle_connections() const noexcept;
  // Closes all idle HTTP/1.1 connections.
  void drop_idle() noexcept;

  [[nodiscard]] const UpstreamSettings& settings() const noexcept { return server_group_.settings(); }
  [[nodiscard]] std::size_t size() const noexcept { return idle_.size(); }
  [[nodiscard]] ServerGroup& server_group() noexcept { return server_group_; }
  [[nodiscard]] RetryBudget& retries() noexcept { return retries_; }
  [[nodiscard]] std::uint64_t random() noexcept;

 private:
  friend class Lease;
  struct Idle {
    std::unique_ptr<net::Stream> stream;
    std::uint64_t since;  // the watchdog tick at which the connection became idle
    std::uint64_t polls;  // Reactor::polls() when the connection became idle
  };

  void on_late() noexcept override {}
  void on_tick() noexcept override;
  struct Choice {            // in each member, one bit stands for each server
    std::uint64_t from = 0;  // the candidates
    std::uint64_t due = 0;   // ejected servers that a request should try now
  };
  [[nodiscard]] Choice choose_idle(const LeaseRequest& wanted) noexcept;
  [[nodiscard]] std::optional<std::size_t> take_trial(const Choice& choice,
                                                      const LeaseRequest& wanted) noexcept;
  [[nodiscard]] std::uint64_t client_hash(const LeaseRequest& wanted) noexcept;
  void reserve_idle(std::size_t server);
  [[nodiscard]] std::unique_ptr<net::Stream> take_idle(std::size_t server, bool once) noexcept;
  [[nodiscard]] Lease lend(std::size_t server, const LeaseRequest& wanted);
  void follow(std::size_t server) noexcept;

  net::Executor executor_;
  net::Reactor& reactor_;
  net::Watchdog& watchdog_;
  ServerGroup& server_group_;
  Balancer balancer_;
  std::vector<Load> loads_;  // one element for each server; in_flight counts only this worker's requests
  std::deque<ServerControl::InFlight> in_flight_;  // the same numbers as in loads_, for other threads
  std::vector<std::vector<Idle>> idle_;            // one list for each server; the most recently used is last
  std::vector<Http2Connections> http2_;            // one element for each server
  // For each server: the value of Member::address_changes() when idle_ was last checked.
  std::vector<std::uint32_t> address_changes_;
  std::vector<net::TlsSession> sessions_;  // for each server: the newest TLS session; null: none
  std::uint64_t now_ = 0;                  // the time in watchdog ticks
  std::uint64_t random_;
  RetryBudget retries_;
};

}  // namespace weir::upstream
