// The part of UpstreamExchange that decides whether to retry a request on another server.
#include "proxy/upstream/upstream_exchange.hpp"

#include <algorithm>
#include <bit>

namespace weir::proxy {

// Decides to forward the answer to the client, unless its status requires a retry.
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

// Decides the next step after a server sent no answer that can be forwarded.
UpstreamExchange::Next UpstreamExchange::judge_failure() {
  auto& attempt = attempt_;
  auto& member = attempt.lease.member();
  const bool late = context_.watch.late();
  const bool body_complete = context_.client.body().complete();
  if (attempt.oversized) {  // an oversized head counts as an answer; another server's head would hardly be
                            // smaller
    attempt.tallies.oversized.add();
    attempt.note_answer();
    return Next::GiveUp;
  }
  // A server that refuses a request (REFUSED_STREAM, GOAWAY) has not processed it (RFC 9113 §8.7). The server
  // may only be about to close the connection, so it gets the request once more on another connection.
  const bool refused = attempt.silent && attempt.lease.was_refused() && !late;
  // If a reused connection closes without an answer, it was probably idle for too long. This says nothing
  // about its server, and the server did not get the request.
  const bool lost = attempt.silent && attempt.lease.reused() && !attempt.lease.was_reset() && !late;
  const bool aged = refused ? !attempt.fresh : lost;
  // If the client has not sent its whole body, the server may have closed the connection because it waited
  // too long.
  const bool owed = attempt.silent && !late && !attempt.whole && !body_complete;
  const bool tells = !aged && !owed && !refused;
  const bool theirs = !attempt.client_ended && (tells ? attempt.count_failure() : attempt.is_theirs());
  // The server sent an interim answer, and the body then did not arrive. So the server did not fail.
  if (!theirs && attempt.heard && !body_complete) attempt.note_answer();
  if (theirs && tells && !attempt.lease.moved() && !(late && attempt.cut_short)) {
    if (attempt.alert.empty())
      member.failed(context_.report.sent, context_.now);
    else
      member.unreachable(context_.now, attempt.alert);
  }
  if (refused) attempt.error = {503, "the upstream refuses the request for now; please retry"};
  if (refused) attempt.handed_over = attempt.handed_over_before;
  if (refused) attempt.avoid = attempt.lease.http2_connection();
  // If no server got the request, weir can retry it whatever its method.
  const bool repeatable = refused ? attempt.is_at_hand() : attempt.is_repeatable();
  if (!theirs || ((attempt.handed_over || refused) && !repeatable)) return Next::GiveUp;
  attempt.fresh = true;
  if (aged) {
    member.give_back_unit(context_.now);
    --attempt.servers;
    attempt.handed_over = attempt.handed_over_before;
  }
  if (attempt.client_takes_no_answer()) return Next::GiveUp;
  if (aged) attempt.tallies.retries.add();
  if (aged) return Next::Try;
  const auto& policy = attempt.pool.settings().retry;
  return (late ? policy.late : policy.broken) ? Next::Retry : Next::GiveUp;
}

// Releases the server and waits before a retry. Returns false if no other server is left, no time remains or
// the retry budget is used up; the server is then not released. Returns false also if the client disconnects
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
  attempt_.lease = {};  // another request may use the place during the wait
  context_.watch.clear_late();
  if (wait > base::Duration{0}) co_await attempt_.pause(wait);
  if (attempt_.client_takes_no_answer() || context_.watch.late()) co_return false;
  context_.report.answered = {};
  attempt_.tallies.retries.add();
  co_return true;
}

}  // namespace weir::proxy
