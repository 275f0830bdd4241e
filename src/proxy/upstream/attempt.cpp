// Which server gets a request, and whether another one does after it.
#include "proxy/upstream/attempt.hpp"

#include "proxy/client/session.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/http/proxy_header.hpp"
#include "weir/net/signal.hpp"
#include "weir/policy/claims.hpp"

#include <algorithm>
#include <bit>

namespace weir::proxy {

namespace {

// RFC 9110 §9.2.2.
bool is_idempotent(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" ||
         method == "DELETE" || method == "TRACE";
}

}  // namespace

// All of its body is at hand still, or has yet to come.
bool Exchange::repeatable(const Attempt& attempt) const noexcept {
  const auto& body = *context_.request_body;
  const bool untouched = body.received() == 0 && !body.complete();
  return (attempt.whole || untouched) && is_idempotent(context_.buffers.head.method);
}

void Exchange::begin_attempts(upstream::Pool& pool, Attempt& attempt) {
  const auto& settings = pool.settings();
  if (settings.timeouts.total != base::kForever) attempt.deadline = context_.now + settings.timeouts.total;
  if (policy::needs_claims(settings.hash_key, context_.buffers.request)) verify_token();
  if (settings.balance == upstream::Balance::Hash)
    attempt.word =
        policy::name_client(settings.hash_key, context_.buffers.request, context_.config.balance).lo;
  pool.retries().pay_in();
}

// Late after `wait`, and when all attempts together are.
void Exchange::arm(Attempt& attempt, base::Duration wait) noexcept {
  const bool bounded = attempt.deadline != base::TimePoint::max();
  const auto left = bounded ? std::max(attempt.deadline - context_.now, base::Duration{0}) : base::kForever;
  attempt.cut_short = left < wait;
  context_.watch.arm(std::min(left, wait));
}

bool Exchange::lease_server(upstream::Pool& pool, Attempt& attempt) {
  attempt.room_after.reset();
  const bool tired = attempt.connecting >= pool.settings().timeouts.connect_total;
  if (tired || context_.now >= attempt.deadline) return false;
  lease_ = {};  // its place may be the one that is wanted
  lease_ = pool.lease({.now = context_.now,
                       .tried = attempt.tried,
                       .fresh = attempt.fresh,
                       .once = !repeatable(attempt),
                       .owed = !attempt.whole,
                       .word = attempt.word});
  attempt.room_after = lease_.room_after();
  attempt.room_at_any_time = lease_.room_at_any_time();
  if (!lease_ || context_.worker.hard_stop) return false;
  context_.report.server = &lease_.server_name();
  return true;
}

// Servers are left and have as many requests as they may. One that got the request and failed says more.
void Exchange::note_full_servers(Attempt& attempt) {
  if (!attempt.room_after) return;
  tallies().crowded.add();
  if (attempt.handed_over) attempt.room_after.reset();
  if (attempt.handed_over) return;
  attempt.status = 503;
  attempt.what = "all servers have as many requests as they may; please retry";
}

observe::UpstreamTallies& Exchange::tallies() noexcept {
  return context_.worker.counters.upstream(
      context_.config.label_of_upstream(context_.config.routes[*context_.report.route].upstream));
}

// That an exchange with a server broke off, unless the client is to blame.
bool Exchange::count_failure() noexcept {
  const bool theirs = is_theirs();
  if (theirs) tallies().failures.add();
  return theirs;
}

bool Exchange::is_theirs() const noexcept {
  return !context_.watch.left() && !context_.worker.hard_stop && !body_failed();
}

net::Task<bool> Exchange::connect(upstream::Pool& pool, Attempt& attempt) {
  const auto& timeouts = pool.settings().timeouts;
  const auto began = context_.now;
  const auto patience = std::min(timeouts.connect, timeouts.connect_total - attempt.connecting);
  arm(attempt, patience);
  context_.watch.begin_cancellable_wait();
  std::string proxy_header;
  if (pool.settings().proxy_protocol) http::append_proxy_header(proxy_header, context_.session.ends());
  std::string fault;
  const auto ec = co_await lease_.connect(proxy_header, patience, fault);
  context_.watch.end_cancellable_wait();
  context_.read_clock();
  if (!ec) {
    tallies().connects.add();
    co_return true;
  }
  attempt.connecting += context_.now - began;
  attempt.tried |= std::uint64_t{1} << lease_.server();
  lease_.member().give_back_unit(context_.now);
  if (upstream::is_shortage(ec)) {
    attempt.status = 503;
    attempt.what = "this server has no room for a connection to the upstream";
    co_return false;
  }
  const bool theirs = count_failure();
  if (theirs && !lease_.moved() && !(context_.watch.late() && attempt.cut_short))
    lease_.member().unreachable(context_.now, fault);
  if (context_.watch.late()) {
    attempt.status = 504;
    attempt.what = "the upstream could not be reached in time";
    context_.watch.clear_late();
  }
  co_return false;
}

// Returns true if no client takes another answer. An exchange that its client has left goes on for the answer
// of the server that has the request (Session::keep_waiting_without_client), not for that of another one.
bool Exchange::is_retryable_answer(const Attempt& attempt) const noexcept {
  return attempt.client_broken || context_.watch.left() || context_.watch.has_gone();
}

// A server got the request and gave no answer that can be passed on: whether another one is to have it, now
// that its time has come.
net::Task<bool> Exchange::prepare_retry(upstream::Pool& pool, Attempt& attempt) {
  const bool late = context_.watch.late();
  if (attempt.oversized) {  // an answer, and the next server's would be no smaller
    tallies().oversized.add();
    note_answer();
    co_return false;
  }
  // A connection that had waited, and is closed without a word, died of age: that says nothing of its server,
  // and the request never got there.
  const bool aged = attempt.silent && lease_.reused() && !late;
  // One that is closed without a word while the client owes some of its body: the server may have waited for
  // that no longer.
  const bool owed = attempt.silent && !late && !attempt.whole && !context_.request_body->complete();
  const bool tells = !aged && !owed;
  const bool theirs = !attempt.client_ended && (tells ? count_failure() : is_theirs());
  // It asked for a body that did not come, and had nothing to answer yet: so far it was well.
  if (!theirs && attempt.heard && !context_.request_body->complete()) note_answer();
  if (theirs && tells && !lease_.moved() && !(late && attempt.cut_short))
    lease_.member().failed(context_.report.sent, context_.now);
  // Of what no server has an octet nothing can be done twice, whatever its method.
  if (!theirs || (attempt.handed_over && !repeatable(attempt))) co_return false;
  attempt.fresh = true;
  if (aged) {
    lease_.member().give_back_unit(context_.now);
    --attempt.servers;
    attempt.handed_over = attempt.servers != 0;
  }
  if (is_retryable_answer(attempt)) co_return false;
  if (aged) {
    tallies().retries.add();
    co_return true;
  }
  const auto& retry = pool.settings().retry;
  if (!(late ? retry.late : retry.broken)) co_return false;
  co_return co_await repeat(pool, attempt);
}

// Whether the answer's status asks for another server's, and there is one to ask.
bool Exchange::is_failed_answer(const upstream::Pool& pool, const Attempt& attempt) const noexcept {
  const auto status = context_.buffers.response.status;
  const auto& statuses = pool.settings().retry.statuses;
  return !statuses.empty() && repeatable(attempt) && !is_retryable_answer(attempt) &&
         std::any_of(statuses.begin(), statuses.end(),
                     [status](const policy::StatusRange& range) {
                       return range.first <= status && status <= range.last;
                     }) &&
         pool.others_serve(attempt.tried | std::uint64_t{1} << lease_.server(), context_.now);
}

// Once more, on another server, after a while: if there is one, time is left and the budget allows it.
net::Task<bool> Exchange::repeat(upstream::Pool& pool, Attempt& attempt) {
  const auto& retry = pool.settings().retry;
  const auto tried = attempt.tried | std::uint64_t{1} << lease_.server();
  if (attempt.servers >= retry.attempts || static_cast<std::size_t>(std::popcount(tried)) >= pool.size())
    co_return false;
  const auto wait = upstream::backoff(retry.backoff, attempt.servers, pool.random());
  if (attempt.deadline - context_.now <= wait || context_.worker.hard_stop) co_return false;
  if (!pool.retries().take()) {
    tallies().denied.add();
    co_return false;
  }
  attempt.tried = tried;
  lease_ = {};  // another request may have its place meanwhile
  context_.watch.clear_late();
  if (wait > base::Duration{0}) co_await pause(wait);
  if (is_retryable_answer(attempt) || context_.watch.late()) co_return false;
  context_.report.answered = {};
  tallies().retries.add();
  co_return true;
}

net::Task<void> Exchange::pause(base::Duration wait) {
  net::Timer timer(context_.worker.executor);
  timer.expires_after(wait);
  context_.watch.disarm();
  context_.watch.begin_cancellable_wait();
  const ScopedCancelTarget cancel_target(pause_, timer);
  const auto ended = co_await net::TimerWait(timer);
  context_.watch.end_cancellable_wait();
  context_.read_clock();
  (void)ended;  // by cancel(): who did that has said so to the session
}

void Exchange::note_pause(upstream::Pool& pool) {
  // Whoever is told to stay away for longer may ask after an hour.
  constexpr base::Duration kLongest = std::chrono::hours{1};
  const auto* said = http::find_field(context_.buffers.response.fields, "retry-after");
  const auto wait =
      said != nullptr ? http::parse_retry_after(said->value, net::Clock::machine_now()) : std::nullopt;
  if (wait) pool.server_group().pause_until(context_.now + std::min(*wait, kLongest));
}

}  // namespace weir::proxy
