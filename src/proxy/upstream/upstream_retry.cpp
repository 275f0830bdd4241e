// The part of UpstreamExchange that decides whether to retry a request on another server.
#include "proxy/upstream/upstream_exchange.hpp"

#include <algorithm>
#include <bit>

namespace weir::proxy {

// Decides whether to forward the answer to the client, or to retry the request because of the answer's
// status.
UpstreamExchange::Next UpstreamExchange::judge_answer() {
  if (!is_failed_answer()) return Next::Answer;
  attempt_.note_answer();
  return Next::Retry;
}

// Returns true if the answer's status requires a retry, and another server is available.
bool UpstreamExchange::is_failed_answer() const noexcept {
  const auto status = context_.buffers.response.status;
  const auto& statuses = attempt_.pool.settings().retry.statuses;
  return !statuses.empty() && attempt_.is_repeatable() && !attempt_.client_takes_no_answer() &&
         std::any_of(statuses.begin(), statuses.end(),
                     [status](const policy::StatusRange& range) {
                       return range.first <= status && status <= range.last;
                     }) &&
         attempt_.pool.others_serve(attempt_.tried_so_far(), context_.now);
}

UpstreamExchange::Failure UpstreamExchange::find_failure() const noexcept {
  const auto& attempt = attempt_;
  if (!attempt.silent || context_.watch.late()) return Failure::Broken;
  if (attempt.lease.broke_by() == upstream::ExchangeFailure::Refusal) return Failure::Refused;
  if (attempt.lease.may_have_met_idle_close()) return Failure::Stale;
  return attempt.whole || is_body_complete() ? Failure::Broken : Failure::Owed;
}

// Decides the next step after a server sent no answer that weir can forward. If a server refuses a request,
// it may just be about to close the connection. So weir sends the request to the server once more on another
// connection. weir does the same after a stale connection.
UpstreamExchange::Next UpstreamExchange::judge_failure() {
  auto& attempt = attempt_;
  // An oversized head counts as an answer: the head of another server would hardly be smaller.
  if (attempt.oversized) {
    attempt.tallies.oversized.add();
    attempt.note_answer();
    return Next::GiveUp;
  }
  const bool late = context_.watch.late();
  const auto failure = find_failure();
  const bool refused = failure == Failure::Refused;
  const bool broken = failure == Failure::Broken;  // other failures say nothing about the server
  const bool counts = broken && !attempt.has_met_call_deadline();
  const bool counts_against_server =
      !attempt.client_ended && (counts ? attempt.count_failure() : attempt.is_servers_fault());
  // The server sent an interim answer, and the client then did not send the whole body. So the server counts
  // as healthy.
  if (!counts_against_server && attempt.got_interim && !is_body_complete()) attempt.note_answer();
  if (counts_against_server && broken && late && !attempt.cut_short) attempt.count_time();
  if (counts_against_server && broken && !(late && attempt.cut_short)) blame_server();
  const bool once_more = failure == Failure::Stale || (refused && !attempt.fresh);
  if (refused) {
    attempt.error = {503, "the upstream refuses the request for now; please retry"};
    attempt.handed_over = attempt.handed_over_before;
    attempt.avoid = attempt.lease.http2_connection();
  }
  // If no server got the request, or this server refused it, weir can retry the request whatever its method.
  const bool repeatable = refused ? attempt.is_at_hand() : attempt.is_repeatable();
  if (!counts_against_server || ((attempt.handed_over || refused) && !repeatable)) return Next::GiveUp;
  attempt.fresh = true;
  if (once_more) {
    attempt.lease.member().give_back_unit(context_.now);
    --attempt.servers;
    attempt.handed_over = attempt.handed_over_before;
  }
  if (attempt.client_takes_no_answer()) return Next::GiveUp;
  if (once_more) attempt.tallies.retries.add();
  if (once_more) return Next::Try;
  const auto& policy = attempt.pool.settings().retry;
  return (late ? policy.late : policy.broken) ? Next::Retry : Next::GiveUp;
}

// Records in the server's state that the server failed. Does nothing if the server's addresses have changed
// since the lease.
void UpstreamExchange::blame_server() {
  const auto& attempt = attempt_;
  auto& member = attempt.lease.member();
  if (attempt.lease.moved()) return;
  if (attempt.alert.empty())
    member.failed(context_.report.sent, context_.now);
  else
    member.unreachable(context_.now, attempt.alert);
}

// Releases the server and waits before a retry. Returns false without releasing the server if no other server
// is left, no time remains, or the retry budget is used up. Also returns false if the client disconnects
// during the wait.
net::Task<bool> UpstreamExchange::retry() {
  auto& pool = attempt_.pool;
  const auto& policy = pool.settings().retry;
  const auto tried = attempt_.tried_so_far();
  if (attempt_.servers >= policy.attempts || static_cast<std::size_t>(std::popcount(tried)) >= pool.size())
    co_return false;
  const auto wait = upstream::backoff(policy.backoff, attempt_.servers, pool.random());
  if (attempt_.last_moment() - context_.now <= wait || context_.worker.hard_stop) co_return false;
  if (!pool.retries().take()) {
    attempt_.tallies.denied.add();
    co_return false;
  }
  attempt_.tried = tried;
  attempt_.lease = {};  // another request may use the place at the server during the wait
  context_.watch.clear_late();
  if (wait > base::Duration{0}) co_await attempt_.pause(wait);
  if (attempt_.client_takes_no_answer() || context_.watch.late()) co_return false;
  context_.report.answered = {};
  attempt_.tallies.retries.add();
  co_return true;
}

}  // namespace weir::proxy
