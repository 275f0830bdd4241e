// The part of UpstreamExchange that decides whether another server gets a request.
#include "proxy/upstream/upstream_exchange.hpp"

#include <algorithm>
#include <bit>

namespace weir::proxy {

// The answer is for the client, unless its status asks for another server's.
UpstreamExchange::Next UpstreamExchange::judge_answer() {
  if (!is_failed_answer()) return Next::Answer;
  attempt_.note_answer();
  return Next::Retry;
}

// Returns true if the answer's status asks for another server's, and there is one to ask.
bool UpstreamExchange::is_failed_answer() const noexcept {
  const auto status = context_.buffers.response.status;
  const auto& statuses = attempt_.pool.settings().retry.statuses;
  return !statuses.empty() && attempt_.is_repeatable() && !attempt_.is_retryable_answer() &&
         std::any_of(statuses.begin(), statuses.end(),
                     [status](const policy::StatusRange& range) {
                       return range.first <= status && status <= range.last;
                     }) &&
         attempt_.pool.others_serve(attempt_.tried_so_far(), context_.now);
}

// A server got the request and gave no answer that can be passed on.
UpstreamExchange::Next UpstreamExchange::judge_failure() {
  auto& attempt = attempt_;
  auto& member = attempt.lease.member();
  const bool late = context_.watch.late();
  const bool body_complete = context_.client.body().complete();
  if (attempt.oversized) {  // an answer, and the next server's would be no smaller
    attempt.tallies.oversized.add();
    attempt.note_answer();
    return Next::GiveUp;
  }
  // A connection that had waited, and is closed without a word, died of age: that says nothing of its server,
  // and the request never got there.
  const bool aged = attempt.silent && attempt.lease.reused() && !late;
  // A connection that is closed without a word while the client owes some of its body: the server may have
  // waited for that no longer.
  const bool owed = attempt.silent && !late && !attempt.whole && !body_complete;
  const bool tells = !aged && !owed;
  const bool theirs = !attempt.client_ended && (tells ? attempt.count_failure() : attempt.is_theirs());
  // It asked for a body that did not come, and had nothing to answer yet: so far it was well.
  if (!theirs && attempt.heard && !body_complete) attempt.note_answer();
  if (theirs && tells && !attempt.lease.moved() && !(late && attempt.cut_short)) {
    if (attempt.alert.empty())
      member.failed(context_.report.sent, context_.now);
    else
      member.unreachable(context_.now, attempt.alert);
  }
  // A request of which no server has an octet can be sent again, whatever its method.
  if (!theirs || (attempt.handed_over && !attempt.is_repeatable())) return Next::GiveUp;
  attempt.fresh = true;
  if (aged) {
    member.give_back_unit(context_.now);
    --attempt.servers;
    attempt.handed_over = attempt.servers != 0;
  }
  if (attempt.is_retryable_answer()) return Next::GiveUp;
  if (aged) attempt.tallies.retries.add();
  if (aged) return Next::Try;
  const auto& policy = attempt.pool.settings().retry;
  return (late ? policy.late : policy.broken) ? Next::Retry : Next::GiveUp;
}

// Lets the server go and waits before another one is tried. Returns false if there is no other, no time is
// left, or the budget is used up; then the lease is as it was, unless the client left meanwhile.
net::Task<bool> UpstreamExchange::retry() {
  auto& pool = attempt_.pool;
  const auto& policy = pool.settings().retry;
  const auto tried = attempt_.tried_so_far();
  if (attempt_.servers >= policy.attempts || static_cast<std::size_t>(std::popcount(tried)) >= pool.size())
    co_return false;
  const auto wait = upstream::backoff(policy.backoff, attempt_.servers, pool.random());
  if (attempt_.deadline - context_.now <= wait || context_.worker.hard_stop) co_return false;
  if (!pool.retries().take()) {
    attempt_.tallies.denied.add();
    co_return false;
  }
  attempt_.tried = tried;
  attempt_.lease = {};  // another request may have its place meanwhile
  context_.watch.clear_late();
  if (wait > base::Duration{0}) co_await attempt_.pause(wait);
  if (attempt_.is_retryable_answer() || context_.watch.late()) co_return false;
  context_.report.answered = {};
  attempt_.tallies.retries.add();
  co_return true;
}

}  // namespace weir::proxy
