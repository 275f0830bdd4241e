#include "proxy/queue/queue_wait.hpp"

#include "weir/policy/priority.hpp"

namespace weir::proxy {

namespace {

// Returns the longest time that a request may wait: max_wait. Without max_wait, returns twice the time in
// which a full queue empties, plus a second. Otherwise a request could wait forever while requests of a
// better priority depart first.
base::Duration longest_wait_in_queue(const limit::Charge& charge) noexcept {
  const auto max_wait = limit::longest_wait(*charge.limiter);
  if (max_wait != base::kForever) return max_wait;
  return 2 * limit::gcra_core(*charge.limiter)->window(charge.cost) + std::chrono::seconds(1);
}

}  // namespace

QueueWait::QueueWait(ExchangeContext& context, policy::Priority priority)
    : context_(context),
      delayed_(context.admission.delayed()),
      longest_(longest_wait_in_queue(delayed_.departure.charge)),
      ticket_(context.worker.shaper, policy::name_client(context.buffers.request, context.config.names.table),
              priority, delayed_.not_before, context.now + longest_) {}

net::Task<QueueWait::Result> QueueWait::run() {
  auto& watch = context_.watch;
  auto& shaper = context_.worker.shaper;
  watch.begin_cancellable_wait();
  watch.arm(longest_);
  context_.admission.hand_to_queue(delayed_.departure);
  Shaper::QueueResult turn{};
  {
    const observe::ScopedCount waits(context_.worker.counters.queue_depth);
    turn = co_await shaper.wait(ticket_, delayed_.departure, delayed_.rule->queue_per_client);
  }
  watch.disarm();
  watch.end_cancellable_wait();
  context_.read_clock();
  if (turn.end == Shaper::End::Departed && watch.has_disconnected()) {
    shaper.pass_on(ticket_.departure());
    turn.end = Shaper::End::Left;
  }
  if (turn.end != Shaper::End::Departed) co_return judge(turn);
  context_.admission.note_taken(ticket_.departure());
  context_.report.departed = context_.now;
  if (!context_.worker.hard_stop) watch.clear_late();
  co_return Result{End::Departed};
}

QueueWait::Result QueueWait::judge(const Shaper::QueueResult& turn) {
  using Ended = Shaper::End;
  auto& watch = context_.watch;
  auto& counters = context_.worker.counters;
  const bool stopped = context_.worker.hard_stop && !watch.left();
  const bool answerable = !context_.worker.hard_stop && !watch.left();
  const bool late = watch.late();
  if (turn.end == Ended::Left && !stopped && !late)
    context_.admission.refund_after_leaving();
  else
    context_.admission.refund();
  if (turn.end == Ended::Crowded) return refuse(counters.queue_crowded, "queue_crowded", turn.retry_after);
  if (stopped || answerable) watch.clear_late();
  if (answerable && (turn.end == Ended::Levelled || turn.end == Ended::Displaced)) {
    const auto retry_after = context_.worker.table.peek(delayed_.charge, context_.now).retry_after;
    if (turn.end == Ended::Displaced)
      return {End::GivesWay, policy::wait_under(*delayed_.rule, retry_after, context_.now)};
    // The request lost its place to a client with fewer waiting requests (Levelled). weir refuses it like a
    // request that finds the queue full.
    return refuse(counters.queue_levelled, "queue_levelled", retry_after);
  }
  // The answer states retry_after. If the client retried earlier, other requests would overtake its request
  // again.
  if (answerable && (turn.end == Ended::Overtaken || late))
    return refuse(counters.queue_overdue, "queue_overdue", turn.retry_after);
  context_.report.failure = stopped ? "stopped" : "client_left";
  if (stopped) return {End::Stopped};
  counters.client_errors(observe::ClientError::Left).add();
  return {End::Left};
}

QueueWait::Result QueueWait::refuse(observe::Tally& counter, std::string_view failure,
                                    base::Duration retry_after) {
  counter.add();
  context_.report.failure = failure;
  return {End::Refused, retry_after};
}

}  // namespace weir::proxy
