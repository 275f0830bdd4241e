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
  const auto& body = *request_body_;
  const bool untouched = body.received() == 0 && !body.complete();
  return (attempt.whole || untouched) && is_idempotent(buffers_->head.method);
}

void Exchange::begin_attempts(upstream::Pool& pool, Attempt& attempt) {
  const auto& settings = pool.settings();
  if (settings.timeouts.total != base::kForever) attempt.deadline = latest_ + settings.timeouts.total;
  if (policy::needs_claims(settings.hash_key, buffers_->request)) verify_token();
  if (settings.balance == upstream::Balance::Hash)
    attempt.word = policy::name_client(settings.hash_key, buffers_->request, config_.balance).lo;
  pool.retries().pay_in();
}

// Late after `wait`, and when all attempts together are.
void Exchange::arm(Attempt& attempt, base::Duration wait) noexcept {
  const bool bounded = attempt.deadline != base::TimePoint::max();
  const auto left = bounded ? std::max(attempt.deadline - latest_, base::Duration{0}) : base::kForever;
  attempt.cut_short = left < wait;
  session_.arm(std::min(left, wait));
}

bool Exchange::lease_server(upstream::Pool& pool, Attempt& attempt) {
  attempt.room_after.reset();
  const bool tired = attempt.connecting >= pool.settings().timeouts.connect_total;
  if (tired || latest_ >= attempt.deadline) return false;
  lease_ = {};  // its place may be the one that is wanted
  lease_ = pool.lease({.now = latest_,
                       .tried = attempt.tried,
                       .fresh = attempt.fresh,
                       .once = !repeatable(attempt),
                       .owed = !attempt.whole,
                       .word = attempt.word});
  attempt.room_after = lease_.room_after();
  attempt.room_at_any_time = lease_.room_at_any_time();
  if (!lease_ || worker_.hard_stop) return false;
  report_.server = &lease_.server_name();
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
  return worker_.counters.upstream(config_.label_of_upstream(config_.routes[*report_.route].upstream));
}

// That an exchange with a server broke off, unless the client is to blame.
bool Exchange::count_failure() noexcept {
  const bool theirs = is_theirs();
  if (theirs) tallies().failures.add();
  return theirs;
}

bool Exchange::is_theirs() const noexcept {
  return !session_.left() && !worker_.hard_stop && !body_failed();
}

net::Task<bool> Exchange::connect(upstream::Pool& pool, Attempt& attempt) {
  const auto& timeouts = pool.settings().timeouts;
  const auto began = latest_;
  const auto patience = std::min(timeouts.connect, timeouts.connect_total - attempt.connecting);
  arm(attempt, patience);
  session_.begin_cancellable_wait();
  std::string proxy_header;
  if (pool.settings().proxy_protocol) http::append_proxy_header(proxy_header, session_.ends());
  std::string fault;
  const auto ec = co_await lease_.connect(proxy_header, patience, fault);
  session_.end_cancellable_wait();
  latest_ = worker_.clock.now();
  if (!ec) {
    tallies().connects.add();
    co_return true;
  }
  attempt.connecting += latest_ - began;
  attempt.tried |= std::uint64_t{1} << lease_.server();
  lease_.member().give_back_unit(latest_);
  if (upstream::is_shortage(ec)) {
    attempt.status = 503;
    attempt.what = "this server has no room for a connection to the upstream";
    co_return false;
  }
  const bool theirs = count_failure();
  if (theirs && !lease_.moved() && !(session_.late() && attempt.cut_short))
    lease_.member().unreachable(latest_, fault);
  if (session_.late()) {
    attempt.status = 504;
    attempt.what = "the upstream could not be reached in time";
    session_.clear_late();
  }
  co_return false;
}

// Returns true if no client takes another answer. An exchange that its client has left goes on for the answer
// of the server that has the request (Session::keep_waiting_without_client), not for that of another one.
bool Exchange::is_retryable_answer(const Attempt& attempt) const noexcept {
  return attempt.client_broken || session_.left() || session_.has_gone();
}

// A server got the request and gave no answer that can be passed on: whether another one is to have it, now
// that its time has come.
net::Task<bool> Exchange::prepare_retry(upstream::Pool& pool, Attempt& attempt) {
  const bool late = session_.late();
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
  const bool owed = attempt.silent && !late && !attempt.whole && !request_body_->complete();
  const bool tells = !aged && !owed;
  const bool theirs = !attempt.client_ended && (tells ? count_failure() : is_theirs());
  // It asked for a body that did not come, and had nothing to answer yet: so far it was well.
  if (!theirs && attempt.heard && !request_body_->complete()) note_answer();
  if (theirs && tells && !lease_.moved() && !(late && attempt.cut_short)) {
    if (attempt.alert.empty())
      lease_.member().failed(report_.sent, latest_);
    else
      lease_.member().unreachable(latest_, attempt.alert);
  }
  // Of what no server has an octet nothing can be done twice, whatever its method.
  if (!theirs || (attempt.handed_over && !repeatable(attempt))) co_return false;
  attempt.fresh = true;
  if (aged) {
    lease_.member().give_back_unit(latest_);
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
  const auto status = buffers_->response.status;
  const auto& statuses = pool.settings().retry.statuses;
  return !statuses.empty() && repeatable(attempt) && !is_retryable_answer(attempt) &&
         std::any_of(statuses.begin(), statuses.end(),
                     [status](const policy::StatusRange& range) {
                       return range.first <= status && status <= range.last;
                     }) &&
         pool.others_serve(attempt.tried | std::uint64_t{1} << lease_.server(), latest_);
}

// Once more, on another server, after a while: if there is one, time is left and the budget allows it.
net::Task<bool> Exchange::repeat(upstream::Pool& pool, Attempt& attempt) {
  const auto& retry = pool.settings().retry;
  const auto tried = attempt.tried | std::uint64_t{1} << lease_.server();
  if (attempt.servers >= retry.attempts || static_cast<std::size_t>(std::popcount(tried)) >= pool.size())
    co_return false;
  const auto wait = upstream::backoff(retry.backoff, attempt.servers, pool.random());
  if (attempt.deadline - latest_ <= wait || worker_.hard_stop) co_return false;
  if (!pool.retries().take()) {
    tallies().denied.add();
    co_return false;
  }
  attempt.tried = tried;
  lease_ = {};  // another request may have its place meanwhile
  session_.clear_late();
  if (wait > base::Duration{0}) co_await pause(wait);
  if (is_retryable_answer(attempt) || session_.late()) co_return false;
  report_.answered = {};
  tallies().retries.add();
  co_return true;
}

net::Task<void> Exchange::pause(base::Duration wait) {
  net::Timer timer(worker_.executor);
  timer.expires_after(wait);
  session_.disarm();
  session_.begin_cancellable_wait();
  const ScopedCancelTarget cancel_target(pause_, timer);
  const auto ended = co_await net::TimerWait(timer);
  session_.end_cancellable_wait();
  latest_ = worker_.clock.now();
  (void)ended;  // by cancel(): who did that has said so to the session
}

// The upstream has said to all how long it wants to be left alone.
net::Task<Exchange::Ending> Exchange::answer_paused(base::Duration wait) {
  tallies().paused.add();
  report_.failure = "upstream_paused";
  refund_charge();
  http::append_retry_after(buffers_->rate_limit_headers, http::retry_after_seconds(wait).value_or(1));
  return error(429, "the upstream has too many requests; please retry later");
}

void Exchange::note_pause(upstream::Pool& pool) {
  // Whoever is told to stay away for longer may ask after an hour.
  constexpr base::Duration kLongest = std::chrono::hours{1};
  const auto* said = http::find_field(buffers_->response.fields, "retry-after");
  const auto wait =
      said != nullptr ? http::parse_retry_after(said->value, net::Clock::machine_now()) : std::nullopt;
  if (wait) pool.server_group().pause_until(latest_ + std::min(*wait, kLongest));
}

}  // namespace weir::proxy
