// The server that currently has a request, and the results so far. UpstreamExchange owns the ServerAttempt,
// and shares it with its parts. `lease` is the current connection to a server. After a server has failed,
// weir does not lease this server again for the request.
#pragma once

#include "proxy/exchange/exchange_context.hpp"
#include "proxy/pacing/pacing.hpp"
#include "proxy/upstream/body_copy.hpp"

#include "weir/net/task.hpp"
#include "weir/upstream/pool.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

// The status of a BodyFault if a message of a gRPC call exceeded its limit.
inline constexpr unsigned kTooManyMessages = 429;

// Why the client's body did not arrive completely. Status 0 means no fault: the body arrived, or the server
// did not accept all of it.
struct BodyFault {
  unsigned status = 0;
  bool slow = false;  // the body arrived slower than min_rate

  [[nodiscard]] explicit operator bool() const noexcept { return status != 0; }
};

class ServerAttempt {
 public:
  // Both arguments must outlive this object.
  ServerAttempt(ExchangeContext& context, upstream::Pool& a_pool);

  // Leases a server without waiting. Returns false if no server has room, or if other requests already wait
  // for a server.
  [[nodiscard]] bool lease_at_once() { return !pool.server_group().queue().is_awaited() && lease_server(); }
  // Waits in the upstream's queue until a server has room, and leases the server. Returns false if no server
  // is available, the queue is full, or the wait reaches or would exceed its limit.
  [[nodiscard]] net::Task<bool> wait_for_server(policy::Priority priority);
  // Must be called if no server could be leased. Sets the error for the client if all servers that were not
  // tried yet are full, or if operators have drained all servers.
  void note_no_server();
  // If the lease has an open connection, counts its reuse and returns true. Otherwise returns false.
  [[nodiscard]] bool reuses_connection();
  [[nodiscard]] net::Task<bool> connect();
  // Waits before the next attempt. Ends early if the client disconnects.
  [[nodiscard]] net::Task<void> pause(base::Duration wait);
  // Cancels every wait for a server.
  void cancel() noexcept;

  // Returns the time by which all attempts must have ended.
  [[nodiscard]] base::TimePoint last_moment() const noexcept { return std::min(deadline, call_deadline); }
  // Sets the deadline of the current wait: `wait` from now, but not later than the deadline of all attempts.
  void arm(base::Duration wait) noexcept;

  // Returns true if weir is able to send the request again: the whole body, or all of the body that has
  // arrived, is still in memory.
  [[nodiscard]] bool is_at_hand() const noexcept;
  // Returns true if weir may send the request to another server: is_at_hand() is true, and the method is
  // idempotent.
  [[nodiscard]] bool is_repeatable() const noexcept;
  // Returns true if `body` must stay in memory, because weir may send the request again. For an HTTP/2 server
  // this does not depend on the method: the server may refuse any request without processing it.
  [[nodiscard]] bool may_need_body() const noexcept { return whole && (is_repeatable() || lease.is_http2()); }
  // Returns true if no answer can reach the client any more. In that case, the exchange must not try another
  // server. The exchange may still wait for the server that has the request
  // (ClientWatch::keep_waiting_without_client).
  [[nodiscard]] bool client_takes_no_answer() const noexcept;
  // Returns true if the server is to blame for the failure of the exchange.
  [[nodiscard]] bool is_servers_fault() const noexcept;
  // Returns true if the current wait for the server ended at the deadline of the call (grpc-timeout). Any
  // client can choose a deadline that no server meets, so this says nothing about the server.
  [[nodiscard]] bool has_met_call_deadline() const noexcept {
    return context_.watch.late() && cut_short && call_deadline <= deadline;
  }
  // Counts an answer whose head has just arrived, for metrics and for rules with `adapt`.
  void count_answer(unsigned status) noexcept;
  // Counts the time since the request was sent. count_answer() calls this function. Must also be called if no
  // answer came in time, because the time shows how slow the server is.
  void count_time() noexcept;
  // Returns the same as is_servers_fault(). If true, counts a failure of the upstream.
  bool count_failure() noexcept;
  // Records in the server's state (upstream::ServerHealth) that the server answered.
  void note_answer() noexcept;
  // Returns the servers tried so far, including the current one: one bit for each.
  [[nodiscard]] std::uint64_t tried_so_far() const noexcept {
    return tried | std::uint64_t{1} << lease.server();
  }

  upstream::Pool& pool;
  observe::UpstreamTallies& tallies;
  upstream::Lease lease;
  std::string_view body;           // the whole request body, if it arrived with the head
  std::string_view upgrade;        // the protocol that the client requests, if the route allows it
  bool whole = false;              // `body` is the complete body, or the request has no body
  std::unique_ptr<Pacing> pacing;  // paces both bodies; null: no rule paces them
  // copy of a body that did not arrive completely with its head; used if servers may speak HTTP/2
  BodyCopy copy;
  const void* avoid = nullptr;      // the HTTP/2 connection on which a server refused the request
  bool fresh = false;               // true: use no idle connection, because the last idle connection was dead
  bool handed_over = false;         // bytes of the request were sent to a server
  bool handed_over_before = false;  // the value of handed_over before the current attempt
  bool silent = false;              // the connection or the wait ended before any byte of an answer
  bool got_interim = false;         // the server sent an interim answer, so it has the request
  bool expects_continue = false;    // the forwarded head has `Expect: 100-continue`
  bool continued = false;           // the server sent 100 Continue
  std::string alert;                // the TLS alert that the server sent instead of an answer
  // The framing of the answer's body on the server's stream. Over HTTP/2 it is chunked, even if the answer
  // has a Content-Length (http::Http2ResponseText).
  http::Framing body_framing = http::Framing::None;
  bool all_drained = false;    // operators have drained all servers, and none got the request
  bool oversized = false;      // the head of the server's answer was too large to forward
  bool client_broken = false;  // the client got only part of a head, so no answer can follow
  // the wait for the answer ended because of the client alone; the server is not to blame
  bool client_ended = false;
  // the answer waits at the moment, for a client that does not read or for `pacing`
  bool client_stalls = false;
  bool cut_short = false;   // the current wait ends at the deadline of all attempts, before its own deadline
  unsigned servers = 0;     // how many servers got the request
  std::uint64_t tried = 0;  // servers that failed for this request: one bit for each
  base::TimePoint deadline = base::TimePoint::max();        // deadline of all attempts together
  base::TimePoint call_deadline = base::TimePoint::max();   // deadline of a gRPC call, from its grpc-timeout
  std::optional<base::Duration> room_after;                 // time until an untried server has room
  LocalError error{502, "the upstream cannot be reached"};  // the answer if no server is left to try
  BodyFault body_fault;

 private:
  [[nodiscard]] bool lease_server();
  void note_unreachable(const net::ErrorCode& ec, std::string_view fault);

  ExchangeContext& context_;
  net::Timer* pause_ = nullptr;    // timer of the current wait; null: no wait
  std::uint64_t client_hash_ = 0;  // hash of the client, which selects its server if `balance` is hash
  base::Duration connecting_{0};   // time spent on failed attempts to connect
  // true: an untried server may have room before room_after has passed, because one of its requests ends
  bool room_at_any_time_ = false;
};

}  // namespace weir::proxy
