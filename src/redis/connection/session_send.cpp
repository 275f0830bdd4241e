// Sends bills and refunds on a session's connection, and watches their deadlines.
#include "redis/cluster/cluster.hpp"
#include "redis/connection/classify.hpp"
#include "redis/connection/command.hpp"
#include "redis/connection/session.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::redis {

namespace {

namespace asio = net::asio;
using Purpose = Pipeline::Purpose;

// Returns the groups of the refunded keys (for LastRefunds). Omits keys of concurrency limits, because the
// deny cache does not store their states.
LastRefunds::Groups groups_of(std::span<const Refund> refunds) {
  LastRefunds::Groups groups;
  for (const auto& line : refunds)
    if (!limit::holds(*line.charge.limiter)) groups.push_back(LastRefunds::group_of(line.charge.key));
  return groups;
}

// Returns how many charges of a sent call Redis may have made although no answer came.
std::size_t unanswered_charges(const Pipeline::Entry& entry) noexcept {
  std::size_t lines = 0;
  // Returns 0 if the call has no number: weir has gathered the call but not sent it.
  if (entry.purpose != Purpose::Charge || entry.number == 0) return 0;
  for (const auto& bill : entry.bills)
    if (bill.call == nullptr || !bill.call->peeks)
      for (const auto& line : bill.lines()) lines += line.enforced && line.cost != 0 ? 1U : 0U;
  return lines;
}

}  // namespace

net::Task<net::ErrorCode> Store::Session::charge(Charges charges, Outcomes outcomes,
                                                 base::TimePoint& server_now, limit::ChargeSet& unanswered) {
  Call call{charges, outcomes};
  unanswered = limit::all_charges(charges.size());
  const auto refused = begin(call);
  if (refused) co_return refused;
  co_await AwaitReply{call};
  // Only `call` may be used after co_await, because the session may have been destroyed meanwhile.
  if (!call.error) server_now = call.server_now;
  co_return call.error;
}

net::ErrorCode Store::Session::begin(Call& call) {
  count(stats_.calls);
  call.deadline = std::chrono::steady_clock::now() + settings_.timeout;
  call.permit = permit_renewer_.next_permit();
  const auto refused = enqueue(call);
  if (refused) count(stats_.failures);
  return refused;
}

net::ErrorCode Store::Session::enqueue(Call& call) {
  if (!takes_bills()) return refusal_;
  if (pipeline_.full()) return StoreError::Overloaded;
  // Calls schedule_flush() first, because it may throw. At this point, nothing refers to the call yet.
  schedule_flush();
  // If another node has redirected the bill, its deadline may be earlier than the time for which the timer is
  // set.
  if (!watching_ || call.deadline < deadline_timer_.expiry())
    watch_until(std::min(call.deadline, pipeline_.next_deadline().value_or(call.deadline)));
  pipeline_.gather(call);
  return {};
}

// Gathers refunds, settlements, releases and renewals of this worker. They are sent at the end of the current
// iteration of the event loop. If bills wait for the first connection, refunds wait for it, too.
void Store::Session::refund(std::span<const Refund> refunds) {
  count(stats_.refunds, refunds.size());
  if (!takes_bills()) return count(stats_.refunds_lost, refunds.size());
  schedule_flush();
  refunds_.note(groups_of(refunds), std::chrono::steady_clock::now());
  if (!pipeline_.gather(refunds)) count(stats_.refunds_lost, refunds.size());
}

void Store::Session::refund_alone(const Refund& line) {
  if (state() != StoreState::Up || !pipeline_.has_room()) return count(stats_.refunds_lost);
  schedule_flush();
  send_refunds({&line, 1});
}

// Sends refunds and renewals of permits in one command. The pipeline's entry keeps them if weir may have to
// send them again in other commands:
// * In a cluster, several refunds must be sent one by one while their slot moves to another node.
// * A permit may be released after its renewal was sent. Only the other renewals may then be sent again.
void Store::Session::send_refunds(std::span<const Refund> refunds) {
  auto command = std::make_unique<std::string>();
  const CallNumber number = permit_renewer_.next_number();
  append_refund(*command, refund_sha_, {settings_.prefix, common_ != nullptr}, refunds, number);
  std::vector<Refund> lines;
  if ((common_ != nullptr && refunds.size() > 1) || std::any_of(refunds.begin(), refunds.end(), renews))
    lines.assign(refunds.begin(), refunds.end());
  send_without_waiter(std::move(command), {.purpose = Purpose::Refund,
                                           .number = number,
                                           .refunded = groups_of(refunds),
                                           .lines = std::move(lines),
                                           .refund_count = refunds.size()});
}

bool Store::Session::forget(const limit::Charge& charge) {
  count(stats_.refunds);
  if (state() != StoreState::Up || !pipeline_.has_room()) {
    count(stats_.refunds_lost);
    return false;
  }
  auto command = std::make_unique<std::string>();
  const CallNumber number = permit_renewer_.next_number();
  append_reset(*command, refund_sha_, {settings_.prefix, common_ != nullptr}, charge, number);
  schedule_flush();
  send_without_waiter(std::move(command), {.purpose = Purpose::Refund,
                                           .number = number,
                                           .refunded = {LastRefunds::group_of(charge.key)},
                                           .refund_count = 1});
  return true;
}

void Store::Session::send_without_waiter(std::unique_ptr<std::string> command, Pipeline::Entry entry) {
  const auto now = std::chrono::steady_clock::now();
  pipeline_.output().append(*command);
  refunds_.note(entry.refunded, now);
  entry.command = std::move(command);
  pipeline_.push(std::move(entry), now);
}

// Posts flush() to the event loop. So all commands of one iteration are sent in one write, and bills
// (requests) share script calls.
void Store::Session::schedule_flush() {
  if (flush_scheduled_) return;
  asio::post(executor_, [self = shared_from_this()] { self->flush(); });
  flush_scheduled_ = true;
}

// Turns gathered refunds and bills into commands. Refunds come first, so that the bills of the same iteration
// see their effect. Bills remain gathered in three cases:
// * The pipeline is full. The bills wait until replies make room, but not beyond their deadlines.
// * The store stops, and sends no more bills.
// * The bills should wait for the next reply, to share a script call with later bills
//   (Pipeline::waits_for_more_bills()). In a cluster, bills do not wait for others, because few of them can
//   share a call.
void Store::Session::pack() {
  const auto now = std::chrono::steady_clock::now();
  const bool by_slot = common_ != nullptr;
  if (by_slot) pipeline_.order_by_slot();
  pipeline_.send_refunds([this](std::span<const Refund> lines) { send_refunds(lines); }, by_slot, stopped_);
  while (!stopped_ && (by_slot || !pipeline_.waits_for_more_bills(now)) &&
         pipeline_.has_room(by_slot ? 2 : 1)) {
    auto bills = pipeline_.take_group();
    if (bills.empty()) return;
    if (bills.front().call->asking) announce_asking(now);
    std::array<BillRequest, kMostBills> demands;
    for (std::size_t i = 0; i < bills.size(); ++i)
      demands[i] = {bills[i].lines(), permit_renewer_.of(bills[i].permit), bills[i].call->peeks};
    const CallNumber number = permit_renewer_.next_number();
    append_charge(pipeline_.output(), charge_sha_, {settings_.prefix, common_ != nullptr},
                  std::span(demands).first(bills.size()), server_time(now), number);
    pipeline_.push({.purpose = Purpose::Charge, .number = number, .bills = std::move(bills)}, now);
  }
}

void Store::Session::flush() {
  flush_scheduled_ = false;
  if (state() != StoreState::Up || blocked_) return;
  pack();
  // enqueue() sets the deadline timer for bills. If only refunds are sent, the timer is not set yet.
  if (!watching_) watch_deadlines();
  net::ErrorCode ec;
  count(stats_.writes, wire_.send(pipeline_.output(), ec));
  if (ec == asio::error::would_block) return wait_for_room();
  if (!ec) return;
  last_error_ = wire_.why();
  hang_up();
}

void Store::Session::wait_for_room() {
  blocked_ = true;
  wire_.wait_for_room([self = shared_from_this()](net::ErrorCode ec) {
    if (ec) return;  // the connection was closed
    self->blocked_ = false;
    self->flush();
  });
}

// Sets the timer, which all calls and commands share, to the earliest deadline. If the call with this
// deadline is answered earlier, the timer keeps running.
void Store::Session::watch_deadlines() {
  const auto next = pipeline_.next_deadline();
  watching_ = false;
  if (next && !stopped_) watch_until(*next);
}

void Store::Session::watch_until(Pipeline::Time deadline) {
  watching_ = false;
  deadline_timer_.expires_at(deadline);
  deadline_timer_.async_wait([self = shared_from_this()](net::ErrorCode ec) {
    if (!ec) self->expire();
  });
  watching_ = true;
}

// Called when the deadline timer expires. Fails overdue calls. Also ends a connection on which a command has
// no reply for too long. A new connection can then renew the permits before they expire.
void Store::Session::expire() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Call*> expired;
  try {
    expired = pipeline_.take_expired(now);
  } catch (const std::bad_alloc&) {  // ending the connection answers all calls
    watching_ = false;
    return drop_connection(StoreError::Overloaded);
  }
  if (state() == StoreState::Up && pipeline_.is_overdue(now)) {
    last_error_ = "no reply to a command within " + base::to_readable(patience_of(settings_));
    drop_connection(StoreError::Away);
  }
  watch_deadlines();
  for (Call* call : expired) {
    count(stats_.timeouts);
    note_failure(StoreError::Timeout, call->deadline - settings_.timeout);
    finish(*call, StoreError::Timeout);
  }
}

// Sends a bill again if it was sent only once. The bill keeps its deadline. Returns true if it will be sent.
bool Store::Session::ask_again(Call& call) {
  if (state() != StoreState::Up || std::exchange(call.resent, true)) return false;
  schedule_flush();  // comes first: if it throws, the call is not gathered
  pipeline_.gather(call);
  return true;
}

void Store::Session::announce_asking(Pipeline::Time now) {
  append_command(pipeline_.output(), {"ASKING"});
  pipeline_.push({.purpose = Purpose::Asking}, now);
}

bool Store::Session::send(Pipeline::Entry& entry, bool asking) {
  if (!takes_bills() || !pipeline_.has_room(2)) return false;
  const auto now = std::chrono::steady_clock::now();
  if (asking) announce_asking(now);
  pipeline_.output().append(*entry.command);
  pipeline_.push(std::move(entry), now);
  schedule_flush();
  return true;
}

// Sends refunds. In a cluster, the Cluster object sends them, because their keys may be on other nodes now.
void Store::Session::refund_anywhere(std::span<const Refund> refunds) {
  if (common_ != nullptr) return common_->cluster.refund(refunds);
  refund(refunds);
}

// Removes renewals of permits that were released after the renewals were sent. A second sending would restore
// the released permit.
void Store::Session::drop_released(Pipeline::Entry& entry) {
  if (std::erase_if(entry.lines,
                    [&](const Refund& line) { return permit_renewer_.is_released_since(line); }) == 0)
    return;
  entry.refund_count = entry.lines.size();
  entry.command->clear();
  if (!entry.lines.empty())
    append_refund(*entry.command, refund_sha_, {settings_.prefix, common_ != nullptr}, entry.lines,
                  entry.number);
}

// Sends a command again if it was sent only once. Returns true if it was sent again.
bool Store::Session::send_again(Pipeline::Entry& entry) {
  if (std::exchange(entry.resent, true) || !pipeline_.has_room()) return false;
  pipeline_.output().append(*entry.command);
  pipeline_.push(std::move(entry), std::chrono::steady_clock::now());
  schedule_flush();
  return true;
}

base::TimePoint Store::Session::server_time(Pipeline::Time now) const noexcept {
  return base::TimePoint(std::chrono::duration_cast<base::Duration>(now.time_since_epoch()) + server_ahead_);
}

void Store::Session::learn_server_time(base::TimePoint server_now) noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  server_ahead_ = server_now.time_since_epoch() - std::chrono::duration_cast<base::Duration>(now);
}

void Store::Session::load_again(Purpose purpose) {
  const bool charge = purpose == Purpose::LoadCharge;
  if (!pipeline_.has_room() || std::exchange(charge ? loading_charge_ : loading_refund_, true)) return;
  append_command(pipeline_.output(), {"SCRIPT", "LOAD", charge ? charge_script() : refund_script()});
  pipeline_.push({.purpose = purpose, .command = {}}, std::chrono::steady_clock::now());
  schedule_flush();  // without this call, the command would wait for the next bill or refund
  count(stats_.script_loads);
}

// Fails all calls and returns their coroutines. The caller must resume the coroutines when it is safe to do
// so.
std::vector<std::coroutine_handle<>> Store::Session::fail_all(StoreError error) {
  std::vector<std::coroutine_handle<>> waiting;
  for (auto& entry : pipeline_.take_all()) {
    if (entry.purpose == Purpose::Refund) {
      count(stats_.refunds_lost, entry.refund_count);
      refunds_.note(entry.refunded, std::chrono::steady_clock::now());  // Redis may have made the refund
    }
    count(stats_.refunds_lost, unanswered_charges(entry));
    for (const auto& bill : entry.bills) {
      if (bill.call == nullptr) continue;
      if (bill.call->waiting == nullptr) count(stats_.failures);
      bill.call->error = error;
      if (bill.call->ends_wait()) waiting.push_back(bill.call->caller);
    }
  }
  return waiting;
}

}  // namespace weir::redis
