#include "proxy/upstream/server_attempt.hpp"

#include "proxy/exchange/scoped_cancel_target.hpp"

#include "weir/http/grpc.hpp"
#include "weir/http/proxy_header.hpp"
#include "weir/net/use_task.hpp"
#include "weir/policy/claims.hpp"
#include "weir/policy/naming.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

// Returns true if the method is idempotent (RFC 9110 §9.2.2).
bool is_idempotent(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" ||
         method == "DELETE" || method == "TRACE";
}

}  // namespace

ServerAttempt::ServerAttempt(ExchangeContext& context, upstream::Pool& a_pool)
    : pool(a_pool), tallies(context.tallies()), context_(context) {
  const auto& settings = pool.settings();
  const auto& request = context_.buffers.request;
  if (settings.timeouts.total != base::kForever) deadline = context_.now + settings.timeouts.total;
  const auto& fields = context_.buffers.head.fields;
  if (const auto asked = http::is_grpc(fields) ? http::grpc_timeout(fields) : std::nullopt)
    call_deadline = context_.report.started + *asked;
  if (policy::needs_claims(settings.hash_key, request)) context_.verify_token();
  if (settings.balance == upstream::Balance::Hash)
    client_hash_ = policy::name_client(settings.hash_key, request, context_.config.balance).lo;
  pool.retries().pay_in();
}

void ServerAttempt::cancel() noexcept {
  if (pause_ != nullptr) pause_->cancel();
  lease.cancel();
}

void ServerAttempt::arm(base::Duration wait) noexcept {
  const auto end = last_moment();
  const bool bounded = end != base::TimePoint::max();
  const auto left = bounded ? std::max(end - context_.now, base::Duration{0}) : base::kForever;
  cut_short = left < wait;
  context_.watch.arm(std::min(left, wait));
}

bool ServerAttempt::is_at_hand() const noexcept {
  const auto& source = context_.client.body();
  return whole || copy.is_whole() || (source.received() == 0 && !source.complete());
}

bool ServerAttempt::is_repeatable() const noexcept {
  return is_at_hand() && is_idempotent(context_.buffers.head.method);
}

bool ServerAttempt::client_takes_no_answer() const noexcept {
  return client_broken || context_.watch.left() || context_.watch.has_disconnected();
}

bool ServerAttempt::is_servers_fault() const noexcept {
  return !context_.watch.left() && !context_.worker.hard_stop && !body_fault;
}

void ServerAttempt::count_answer(unsigned status) noexcept {
  tallies.attempts.add();
  if (status >= 500) tallies.attempts_failed.add();
  count_time();
}

void ServerAttempt::count_time() noexcept {
  tallies.seconds.record(context_.now - context_.report.sent);
}

bool ServerAttempt::count_failure() noexcept {
  if (!is_servers_fault()) return false;
  tallies.failures.add();
  tallies.attempts.add();
  tallies.attempts_failed.add();
  return true;
}

// Records in the server's state that the server answered. Does nothing if the server's addresses have changed
// since the lease.
void ServerAttempt::note_answer() noexcept {
  if (!lease.moved()) lease.member().answered(context_.report.sent, context_.now);
}

bool ServerAttempt::lease_server() {
  room_after.reset();
  const bool tired = connecting_ >= pool.settings().timeouts.connect_total;
  if (context_.now >= call_deadline) error = {504, "the deadline of the call has passed"};
  if (tired || context_.now >= last_moment()) return false;
  lease = {};  // the old lease may occupy the only free place at a server
  lease = pool.lease({.now = context_.now,
                      .tried = tried,
                      .fresh = fresh,
                      .once = !is_repeatable(),
                      .owed = !whole,
                      .avoid = avoid,
                      .client_hash = client_hash_});
  room_after = lease.room_after();
  room_at_any_time_ = lease.room_at_any_time();
  if (!lease || context_.worker.hard_stop) return false;
  context_.report.server = &lease.server_name();
  return true;
}

// Sets the error for a request that could lease no server. If a server got the request and failed, keeps the
// error of that failure, because it says more than "all servers are full".
void ServerAttempt::note_no_server() {
  all_drained = !handed_over && pool.server_group().is_drained();
  if (all_drained) error = {503, "all servers of this upstream are drained; please retry later"};
  if (!room_after) return;
  tallies.crowded.add();
  if (handed_over) room_after.reset();
  if (handed_over) return;
  error = {503, "all servers have as many requests as they may; please retry"};
}

bool ServerAttempt::reuses_connection() {
  if (!lease.connected()) return false;
  tallies.reused.add();
  return true;
}

net::Task<bool> ServerAttempt::connect() {
  const auto& settings = pool.settings();
  const auto began = context_.now;
  const auto patience = std::min(settings.timeouts.connect, settings.timeouts.connect_total - connecting_);
  arm(patience);
  context_.watch.begin_cancellable_wait();
  std::string proxy_header;
  if (settings.proxy_protocol) http::append_proxy_header(proxy_header, context_.client.ends());
  std::string fault;
  auto ec = co_await lease.connect(proxy_header, patience, fault);
  if (upstream::is_out_of_descriptors(ec) && context_.worker.worker_snapshots.drop_idle_servers())
    ec = co_await lease.connect(proxy_header, patience, fault);
  context_.watch.end_cancellable_wait();
  context_.read_clock();
  tallies.connects.add(lease.opened());
  if (!ec) co_return true;
  connecting_ += context_.now - began;
  note_unreachable(ec, fault);
  co_return false;
}

void ServerAttempt::note_unreachable(const net::ErrorCode& ec, std::string_view fault) {
  tried = tried_so_far();
  auto& member = lease.member();
  member.give_back_unit(context_.now);
  if (upstream::is_refusal(ec)) {
    error = {503, "the upstream refuses the request for now; please retry"};
    return;
  }
  if (upstream::is_shortage(ec)) {
    error = {503, "this server has no room for a connection to the upstream"};
    return;
  }
  auto& watch = context_.watch;
  const bool counts_against_server = has_met_call_deadline() ? is_servers_fault() : count_failure();
  if (counts_against_server && !lease.moved() && !(watch.late() && cut_short))
    member.unreachable(context_.now, fault);
  if (!watch.late() && ec != net::asio::error::timed_out) return;
  error = {504, "the upstream could not be reached in time"};
  watch.clear_late();
}

net::Task<void> ServerAttempt::pause(base::Duration wait) {
  net::Timer timer(context_.worker.executor);
  timer.expires_after(wait);
  context_.watch.disarm();
  context_.watch.begin_cancellable_wait();
  const ScopedCancelTarget cancel_target(pause_, timer);
  net::ErrorCode ended;
  co_await timer.async_wait(net::use_task(ended));
  context_.watch.end_cancellable_wait();
  context_.read_clock();
  // the timer or cancel() ended the wait; the caller of cancel() has recorded the reason in the watch
  (void)ended;
}

}  // namespace weir::proxy
