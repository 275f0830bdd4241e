// The part of an exchange that is about others: waiting for its turn in the shaper, and being shed.
#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/client/session.hpp"
#include "proxy/exchange/exchange.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/policy/priority.hpp"

#include <utility>

namespace weir::proxy {

namespace {

// Where no max_wait bounds the wait, others of a better priority could go first for ever: nobody waits longer
// than twice the time in which a queue full of requests like it empties, and a second.
base::Duration longest_wait_in_queue(const limit::Charge& charge) noexcept {
  const auto said = limit::longest_wait(*charge.limiter);
  if (said != base::kForever) return said;
  return 2 * limit::gcra_core(*charge.limiter)->window(charge.cost) + std::chrono::seconds(1);
}

// Whatever ends the wait, an exception too.
class Counted {
 public:
  explicit Counted(observe::Gauge& gauge) noexcept : gauge_(gauge) { gauge_.add(); }
  ~Counted() { gauge_.remove(); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  observe::Gauge& gauge_;
};

}  // namespace

// What a deadline is for: others of a higher priority may go first for so long that it passes. The queue ends
// the wait as soon as it sees that coming for who is last, and the session's timer for everybody else.
net::Task<Exchange::Ending> Exchange::wait_in_queue() {
  const auto delayed = admission_.delayed();
  const auto longest = longest_wait_in_queue(delayed.departure.charge);
  Shaper::Ticket ticket(worker_.shaper, policy::name_client(buffers_->request, config_.names.table),
                        priority_, delayed.not_before, latest_ + longest);
  ticket_ = &ticket;
  const bool counted = in_flight_;
  leave();
  session_.begin_cancellable_wait();
  session_.arm(longest);
  admission_.hand_to_queue(delayed.departure);
  Shaper::QueueResult queue_result{};
  {
    const Counted waits(worker_.counters.queue_depth);
    queue_result = co_await worker_.shaper.wait(ticket, delayed.departure, delayed.rule->queue_per_client);
  }
  session_.disarm();
  session_.end_cancellable_wait();
  ticket_ = nullptr;
  latest_ = worker_.clock.now();
  if (queue_result.end == Shaper::End::Departed && session_.has_gone()) {
    worker_.shaper.pass_on(ticket.departure());
    queue_result.end = Shaper::End::Left;
  }
  if (queue_result.end != Shaper::End::Departed) co_return co_await leave_queue(queue_result, delayed);
  admission_.note_taken(ticket.departure());
  report_.departed = latest_;
  if (!worker_.hard_stop) session_.clear_late();
  if (counted) worker_.in_flight.enter_again();
  in_flight_ = counted;
  co_return co_await pass_on();
}

net::Task<Exchange::Ending> Exchange::leave_queue(const Shaper::QueueResult& queue_result,
                                                  const AdmissionController::Delayed& delayed) {
  const bool stopped = worker_.hard_stop && !session_.left();
  if (queue_result.end == Shaper::End::Left && !stopped && !session_.late())
    admission_.refund_after_leaving();
  else
    admission_.refund();
  if (queue_result.end == Shaper::End::Crowded) {
    worker_.counters.queue_crowded.add();
    report_.failure = "queue_crowded";
    return refuse_waiting(delayed, queue_result.retry_after);
  }
  const bool answerable = !worker_.hard_stop && !session_.left();
  const bool levelled = queue_result.end == Shaper::End::Levelled;
  if ((levelled || queue_result.end == Shaper::End::Displaced) && answerable) {
    session_.clear_late();
    const auto retry_after = worker_.table.peek(delayed.charge, latest_).retry_after;
    if (!levelled) return reject_displaced(policy::wait_under(*delayed.rule, retry_after, latest_));
    // Refused as whoever finds the queue full: that its client had the most places is its client's own doing.
    worker_.counters.queue_levelled.add();
    report_.failure = "queue_levelled";
    return refuse_waiting(delayed, retry_after);
  }
  if ((queue_result.end == Shaper::End::Overtaken || session_.late()) && answerable) {
    session_.clear_late();
    worker_.counters.queue_overdue.add();
    report_.failure = "queue_overdue";
    return refuse_waiting(delayed, queue_result.retry_after);  // it might join at once, to be overtaken again
  }
  if (stopped) {
    session_.clear_late();
    report_.failure = "stopped";
    return error(503, "this server is stopping; please retry");
  }
  report_.failure = "client_left";
  worker_.counters.client_errors(observe::ClientError::Left).add();
  return net::Task<Ending>::ended(Ending::Close);
}

net::Task<Exchange::Ending> Exchange::refuse_waiting(const AdmissionController::Delayed& delayed,
                                                     base::Duration retry_after) {
  refuse_wait(report_.decision, *delayed.rule, *delayed.departure.charge.limiter, retry_after, latest_);
  note_rate_limit_headers(report_.decision);
  return refuse_by(*delayed.rule, report_.decision.outcome.retry_after);
}

// What weir answers itself is neither counted nor shed: a health check must not fail because others have much
// to do.
bool Exchange::enter() noexcept {
  if (!report_.route || config_.routes[*report_.route].respond || !worker_.in_flight.bounded()) return true;
  in_flight_ = worker_.in_flight.enter(priority_);
  return in_flight_;
}

void Exchange::leave() noexcept {
  if (std::exchange(in_flight_, false)) worker_.in_flight.leave();
}

net::Task<Exchange::Ending> Exchange::shed() {
  worker_.counters.shed[priority_].add();
  report_.failure = "shed";
  buffers_->rate_limit_headers = "Retry-After: 1\r\n";  // a hint: nobody knows when others will have ended
  return error(503, "more requests are under way than this server takes; please retry");
}

// 503 and not 429: it had kept every limit, and was admitted; load sent it away, the lowest priority first.
// The limiter says when it has room again for what this one costs.
net::Task<Exchange::Ending> Exchange::reject_displaced(base::Duration retry_after) {
  worker_.counters.shed[priority_].add();
  worker_.counters.queue_displaced.add();
  report_.failure = "queue_displaced";
  buffers_->rate_limit_headers = "Retry-After: ";
  http::append_number(buffers_->rate_limit_headers, http::retry_after_seconds(retry_after).value_or(1));
  buffers_->rate_limit_headers += "\r\n";
  return error(503, "others go first, and no turn is left in the queue; please retry");
}

}  // namespace weir::proxy
