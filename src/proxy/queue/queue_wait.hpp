// QueueWait makes one request wait in the queue for its departure. Lives in the coroutine frame of
// Exchange::wait_in_queue().
//
// The wait has a deadline, because requests of a better priority may depart first for a long time. If the
// last request in order can no longer depart before its deadline, the queue evicts it at once. ClientWatch
// ends all other waits when their deadlines pass.
#pragma once

#include "proxy/exchange/exchange_context.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/shaper.hpp"

namespace weir::proxy {

class QueueWait {
 public:
  // `context` must outlive the wait. REQUIRES that the decision is Delay.
  QueueWait(ExchangeContext& context, policy::Priority priority);

  enum class End : std::uint8_t {
    Departed,  // the request departs now
    // the queue's rule refuses the request: the client has too many waiting requests, or the deadline passes
    Refused,
    GivesWay,  // a request of a better priority took this request's place
    Stopped,   // weir stops
    Left,      // the client has disconnected
  };
  struct Result {
    End end;
    base::Duration retry_after{0};  // set if the end is Refused or GivesWay
  };
  // Waits until the request departs or cannot depart. If the request cannot depart, refunds its charges,
  // unless AdmissionController::refund_after_leaving() keeps them.
  [[nodiscard]] net::Task<Result> run();
  // Ends the wait early. Does nothing if the wait has ended.
  void cancel() noexcept { ticket_.leave(); }

  [[nodiscard]] const AdmissionController::Delayed& delayed() const noexcept { return delayed_; }

 private:
  [[nodiscard]] Result judge(const Shaper::QueueResult& turn);
  [[nodiscard]] Result refuse(observe::Tally& counter, std::string_view failure, base::Duration retry_after);

  ExchangeContext& context_;
  const AdmissionController::Delayed delayed_;
  const base::Duration longest_;  // the longest time that the request may wait
  Shaper::Ticket ticket_;
};

}  // namespace weir::proxy
