// One request that waits in the queue for its departure.
//
// The wait has a deadline: requests of a better priority may go first for so long that it passes. The queue
// ends the wait as soon as it sees that coming for the last in order, and the client's watch for all others.
#pragma once

#include "proxy/exchange/exchange_context.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/shaper.hpp"

namespace weir::proxy {

class QueueWait {
 public:
  // `context`: of a request whose decision is Delay. It outlives the wait.
  QueueWait(ExchangeContext& context, policy::Priority priority);

  enum class End : std::uint8_t {
    Departed,  // it is this request's turn
    Refused,   // by the rule that it waited for: no place, or no time is left
    GivesWay,  // a request of a better priority has its place
    Stopped,   // weir stops
    Left,      // its client left
  };
  struct Result {
    End end;
    base::Duration retry_after{0};  // of Refused and GivesWay
  };
  // Waits. Unless it departs, its charge is refunded, or stands if that is what its client left for.
  [[nodiscard]] net::Task<Result> run();
  // Ends the wait early, if it has not ended.
  void cancel() noexcept { ticket_.leave(); }

  [[nodiscard]] const AdmissionController::Delayed& delayed() const noexcept { return delayed_; }

 private:
  [[nodiscard]] Result judge(const Shaper::QueueResult& turn);
  [[nodiscard]] Result refuse(observe::Tally& counter, std::string_view failure, base::Duration retry_after);

  ExchangeContext& context_;
  const AdmissionController::Delayed delayed_;
  const base::Duration longest_;  // that it waits
  Shaper::Ticket ticket_;
};

}  // namespace weir::proxy
