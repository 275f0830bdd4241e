// Which server has a request, and what came of it so far. The parts of an exchange with an upstream share it.
//
// UpstreamExchange owns it. `lease` is the connection under way; a server that failed is not leased again.
#pragma once

#include "proxy/exchange/exchange_context.hpp"

#include "weir/net/task.hpp"
#include "weir/upstream/pool.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// Why the client's body did not come whole. A status of 0: it did, or the server took no more.
struct BodyFault {
  unsigned status = 0;
  bool slow = false;  // it came slower than min_rate

  [[nodiscard]] explicit operator bool() const noexcept { return status != 0; }
};

class ServerAttempt {
 public:
  // Both outlive it.
  ServerAttempt(ExchangeContext& context, upstream::Pool& a_pool);

  // Leases a server at once, unless others wait for one.
  [[nodiscard]] bool lease_at_once() { return !pool.server_group().queue().is_awaited() && lease_server(); }
  // Waits in the queue of the upstream until a server has room. Returns false if there is none to wait for.
  [[nodiscard]] net::Task<bool> wait_for_server(policy::Priority priority);
  // Call if no server could be leased: says so to the client if servers are left that have no room.
  void note_full_servers();
  // Returns true if the lease came with a connection.
  [[nodiscard]] bool reuses_connection();
  [[nodiscard]] net::Task<bool> connect();
  // Waits before the next attempt. Ends early if the client leaves.
  [[nodiscard]] net::Task<void> pause(base::Duration wait);
  // Ends whatever waits for a server.
  void cancel() noexcept;

  // The wait under way is late after `wait`, or when all attempts together are.
  void arm(base::Duration wait) noexcept;

  // Returns true if all of the request's body is at hand still, or has yet to come, and the method allows it.
  [[nodiscard]] bool is_repeatable() const noexcept;
  // Returns true if no client takes another answer. An exchange that its client has left goes on for the
  // answer of the server that has the request (ClientWatch::keep_waiting_without_client), not for that of
  // another one.
  [[nodiscard]] bool is_retryable_answer() const noexcept;
  // Returns true if the server is to blame for an exchange that broke off.
  [[nodiscard]] bool is_theirs() const noexcept;
  // The same, and counts the failure.
  bool count_failure() noexcept;
  // The server has answered, as far as that was wanted.
  void note_answer() noexcept;
  // Servers that were tried, with the present one: a bit for each.
  [[nodiscard]] std::uint64_t tried_so_far() const noexcept {
    return tried | std::uint64_t{1} << lease.server();
  }

  upstream::Pool& pool;
  observe::UpstreamTallies& tallies;
  upstream::Lease lease;
  std::string_view body;       // the whole request body, if it came with the head
  std::string_view upgrade;    // the protocol that was asked for; the route's
  bool whole = false;          // `body` is all of it, or there is none
  bool fresh = false;          // use no waiting connection: the last one was dead
  bool handed_over = false;    // bytes of the request were sent to some server
  bool silent = false;         // the connection ended before a byte of an answer
  bool heard = false;          // the server sent an interim answer: it has the request
  std::string alert;           // the alert that ended TLS instead of an answer
  bool oversized = false;      // it answered with a head that is too large to be passed on
  bool client_broken = false;  // what the client was sent ends within a head: nothing may follow
  bool client_ended = false;   // the wait for the answer ended because of the client alone
  bool client_stalls = false;  // the client does not take the answer that waits for it
  bool cut_short = false;      // the wait under way ends with all attempts, before its server had its time
  unsigned servers = 0;        // that got the request
  std::uint64_t tried = 0;     // servers that failed, a bit for each
  base::TimePoint deadline = base::TimePoint::max();        // of all attempts together
  std::optional<base::Duration> room_after;                 // servers are left, and have no room
  LocalError error{502, "the upstream cannot be reached"};  // to answer when nothing is left to try
  BodyFault body_fault;

 private:
  [[nodiscard]] bool lease_server();
  void note_unreachable(const net::ErrorCode& ec, std::string_view fault);

  ExchangeContext& context_;
  net::Timer* pause_ = nullptr;    // while it lasts
  std::uint64_t word_ = 0;         // what stands for the client if it has a server of its own
  base::Duration connecting_{0};   // spent on connections that came to nothing
  bool room_at_any_time_ = false;  // servers are left, and requests in flight are in the way
};

}  // namespace weir::proxy
