// The session's traffic: what leaves, what comes back, and who is told.
#include "redis/classify.hpp"
#include "redis/cluster.hpp"
#include "redis/command.hpp"
#include "redis/session.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::redis {

namespace {

namespace asio = net::asio;
using Purpose = Pipeline::Purpose;

// Whether an error speaks of the server rather than of one key: only such open the breaker.
bool is_of_server(const net::ErrorCode& error) noexcept {
  return error != StoreError::ServerError && error != StoreError::CommandDenied &&
         error != StoreError::Overloaded;
}

// Whose states may move earlier. Of concurrency nothing is kept that could be outdated (DenyCache), and every
// request that ends lets go of something.
LastRefunds::Groups groups_of(std::span<const Refund> refunds) noexcept {
  LastRefunds::Groups groups = 0;
  for (const auto& line : refunds)
    if (!limit::holds(*line.charge.limiter)) groups |= LastRefunds::group_of(line.charge.key);
  return groups;
}

}  // namespace

net::ErrorCode Store::Session::begin(Call& call) {
  count(stats_.calls);
  call.deadline = std::chrono::steady_clock::now() + settings_.timeout;
  call.permit = holding_.next_permit();
  const auto refused = enqueue(call);
  if (refused) count(stats_.failures);
  return refused;
}

net::ErrorCode Store::Session::enqueue(Call& call) {
  if (!takes_bills()) return refusal_;
  if (pipeline_.full()) return StoreError::Overloaded;
  // First: where one of these throws, nothing refers to the call yet.
  schedule_flush();
  // What another node sent on is due earlier than what is asked here.
  if (!watching_ || (common_ != nullptr && call.deadline < deadline_timer_.expiry()))
    watch_until(std::min(call.deadline, pipeline_.next_deadline().value_or(call.deadline)));
  pipeline_.gather(call);
  return {};
}

// Whatever this worker gives back, settles, releases or renews leaves here.
void Store::Session::refund(std::span<const Refund> refunds) {
  count(stats_.refunds);
  if (state() != StoreState::Up || !pipeline_.has_room()) return count(stats_.refunds_lost);
  auto command = std::make_unique<std::string>();
  append_refund(*command, refund_sha_, {settings_.prefix, common_ != nullptr}, refunds);
  tell(std::move(command), groups_of(refunds));
}

void Store::Session::forget(const limit::Charge& charge) {
  count(stats_.refunds);
  if (state() != StoreState::Up || !pipeline_.has_room()) return count(stats_.refunds_lost);
  if (units_ != nullptr && charge.lease != 0) units_->forget(charge);
  auto command = std::make_unique<std::string>();
  append_delete(*command, {settings_.prefix, common_ != nullptr}, charge.key);
  tell(std::move(command), LastRefunds::group_of(charge.key));
}

void Store::Session::tell(std::unique_ptr<std::string> command, LastRefunds::Groups refunded) {
  pipeline_.output().append(*command);
  refunds_.note(refunded, std::chrono::steady_clock::now());
  pipeline_.push({.purpose = Purpose::Refund, .refunded = refunded, .command = std::move(command)});
  schedule_flush();
}

// Whatever else this turn of the loop asks leaves in the same write, and bills share calls.
void Store::Session::schedule_flush() {
  if (flush_scheduled_) return;
  asio::post(executor_, [self = shared_from_this()] { self->flush(); });
  flush_scheduled_ = true;
}

// What finds no room among the commands without an answer stays for the next turn, until its deadline. A
// store that stops charges nobody whom it tells so.
void Store::Session::pack() {
  const auto now = std::chrono::steady_clock::now();
  if (common_ != nullptr) pipeline_.order_by_slot();
  while (!stopped_ && pipeline_.has_room(common_ != nullptr ? 2 : 1)) {
    auto bills = pipeline_.take_group();
    if (bills.empty()) return;
    if (bills.front().call->asking) announce_asking();
    std::array<Demand, kMostBills> demands;
    for (std::size_t i = 0; i < bills.size(); ++i)
      demands[i] = {bills[i].lines(), holding_.of(bills[i].permit), bills[i].call->looks};
    append_charge(pipeline_.output(), charge_sha_, {settings_.prefix, common_ != nullptr},
                  std::span(demands).first(bills.size()), server_time(now));
    pipeline_.push({.purpose = Purpose::Charge, .bills = std::move(bills), .sent = now});
  }
}

void Store::Session::flush() {
  flush_scheduled_ = false;
  if (state() != StoreState::Up || blocked_) return;
  pack();
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
    if (ec) return;  // the connection has ended
    self->blocked_ = false;
    self->flush();
  });
}

// One timer for all calls: set for the earliest deadline of the moment, and left alone while that moves
// later.
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

void Store::Session::expire() {
  const auto expired = pipeline_.take_expired(std::chrono::steady_clock::now());
  watch_deadlines();
  for (Call* call : expired) {
    count(stats_.timeouts);
    note_failure(StoreError::Timeout, call->deadline - settings_.timeout);
    finish(*call, StoreError::Timeout);
  }
}

// False when the connection is of no more use.
bool Store::Session::handle_replies() {
  for (;;) {
    const auto next = reader_.next();
    if (next == ReplyReader::Next::Incomplete) return true;
    if (next == ReplyReader::Next::Malformed) return false;
    auto entry = pipeline_.pop();
    if (!entry) return false;
    handle(*std::move(entry), reader_.reply());
    if (state() != StoreState::Up) return true;  // ended meanwhile: what is left belongs to nobody
  }
}

void Store::Session::handle(Pipeline::Entry entry, const Reply& reply) {
  switch (entry.purpose) {
    case Purpose::Charge:
      return handle_charges(std::move(entry), reply);
    case Purpose::Refund:
      return handle_refund(std::move(entry), reply);
    case Purpose::LoadCharge:
      loading_charge_ = false;
      return;
    case Purpose::LoadRefund:
      loading_refund_ = false;
      return;
    case Purpose::Asking:
      return;  // what comes after it says what is wrong
  }
}

// Nobody else knows of these calls any more: whatever is thrown on the way, all of them are told something.
void Store::Session::handle_charges(Pipeline::Entry entry, const Reply& reply) {
  try {
    if (reply.kind == Reply::Kind::Error)
      handle_fault(entry, reply);
    else
      handle_bills(entry, reply);
  } catch (...) {
    for (auto& bill : entry.bills)
      if (Call* call = std::exchange(bill.call, nullptr); call != nullptr)
        finish(*call, StoreError::Overloaded);
    throw;
  }
  pipeline_.recycle(std::move(entry.bills));
}

void Store::Session::handle_bills(Pipeline::Entry& entry, const Reply& reply) {
  BillPlace place{0, entry.bills.size(), 0, 0};
  for (const auto& bill : entry.bills) place.lines += bill.lines().size();
  std::vector<BillPlace> late;
  for (auto& bill : entry.bills) {
    const auto lines = bill.lines().size();
    if (bill.call != nullptr)
      handle_bill(*bill.call, place, entry.sent, reply);
    else
      late.push_back(place);
    bill.call = nullptr;
    ++place.bill;
    place.first_line += lines;
  }
  // The last one first: a bucket with a lease takes back its last slots alone.
  for (auto at = late.rbegin(); at != late.rend(); ++at) take_back(entry.bills[at->bill], *at, reply);
}

// All bills of a call share its fate; but where one of them has come to a command that is denied, each is
// asked by itself, and with other permits, for what those before it have taken stays in Redis until it ends.
void Store::Session::handle_fault(Pipeline::Entry& entry, const Reply& reply) {
  const auto error = classify(reply.text);
  if (error == StoreError::NoScript) load_again(Purpose::LoadCharge);
  for (auto& bill : entry.bills) {
    if (bill.call == nullptr) continue;
    const bool shared = error == StoreError::CommandDenied && entry.bills.size() > 1;
    if (shared) bill.call->alone = true;
    if (shared) bill.call->permit = holding_.next_permit();
    bool sent = (error == StoreError::NoScript || shared) && ask_again(*bill.call);
    if (!sent && common_ != nullptr) sent = common_->cluster.sends_on(*bill.call, entry, reply.text, *this);
    if (!sent) {
      last_error_ = advised(reply.text);
      const Lines lines = bill.lines();
      if (!is_of_server(error) && faults_.note(Faults::kinds_of(lines), std::chrono::steady_clock::now()))
        tell_fault(Faults::names_of(lines));
      note_failure(error, entry.sent);
      finish(*bill.call, error);
    }
    bill.call = nullptr;
  }
}

void Store::Session::handle_bill(Call& call, const BillPlace& place, Pipeline::Time sent,
                                 const Reply& reply) {
  const auto reading = read_outcomes(reply, place, call.charges, call.outcomes, call.server_now, call.looks);
  if (reading == Reading::OtherTime) {
    learn_server_time(call.server_now);
    if (ask_again(call)) return;
  }
  if (reading != Reading::Answer) {
    last_error_ = "an answer that is not our script's";
    note_failure(StoreError::BadReply, sent);
    return finish(call, StoreError::BadReply);
  }
  failures_in_row_ = 0;
  attempts_ = 0;
  if (!faults_.none()) faults_.went_well(Faults::kinds_of(call.charges));
  if (call.looks) return finish(call, {});
  holding_.keep(call);
  if (!call.told.empty()) {
    const auto told = answers_of(reply, place, call.charges.size());
    std::copy(told.begin(), told.end(), call.told.begin());
  }
  if (const auto answers = answers_of_refused(reply, place, call.charges.size()); !answers.empty())
    denied_.remember(call.charges, answers, {sent, std::chrono::steady_clock::now(), call.server_now});
  else
    denied_.forget(call.charges);
  finish(call, {});
}

// A reply that came too late: nobody was admitted for what it charged.
void Store::Session::take_back(const Pipeline::Bill& bill, const BillPlace& place, const Reply& reply) {
  const auto lines = bill.lines();
  std::array<limit::Outcome, limit::kMaxCharges> outcomes;
  base::TimePoint charged_at;
  const auto answers = std::span(outcomes).first(lines.size());
  if (read_outcomes(reply, place, lines, answers, charged_at) != Reading::Answer) return;
  const auto told = answers_of(reply, place, lines.size());
  std::vector<Refund> refunds;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].enforced && !answers[i].allowed) return;  // nothing was charged
    const AnswerNumbers answer(told.data() + i * kAnswerNumbers, kAnswerNumbers);
    const auto departure = departure_of(lines[i], charged_at, answers[i], answer);
    if (answers[i].allowed) refunds.push_back({lines[i], departure, 0, holding_.of(bill.permit)});
  }
  if (!refunds.empty()) refund_anywhere(refunds);
}

void Store::Session::handle_refund(Pipeline::Entry entry, const Reply& reply) {
  const bool failed = reply.kind == Reply::Kind::Error;
  if (failed && classify(reply.text) == StoreError::NoScript && !entry.resent) {
    load_again(Purpose::LoadRefund);
    if (send_again(entry)) return;
  }
  if (failed && common_ != nullptr && common_->cluster.sends_on(entry, reply.text, *this)) return;
  refunds_.note(entry.refunded, std::chrono::steady_clock::now());
  if (!failed) return;
  last_error_ = advised(reply.text);
  if (faults_.note(Faults::kGivingBack, std::chrono::steady_clock::now())) tell_fault("giving back");
  count(stats_.refunds_lost);
}

// Once for each bill, within the deadline it had.
bool Store::Session::ask_again(Call& call) {
  if (state() != StoreState::Up || std::exchange(call.resent, true)) return false;
  schedule_flush();  // first: where that throws, the call is not there
  pipeline_.gather(call);
  return true;
}

void Store::Session::announce_asking() {
  append_command(pipeline_.output(), {"ASKING"});
  pipeline_.push({.purpose = Purpose::Asking});
}

bool Store::Session::send(Pipeline::Entry& entry, bool asking) {
  if (!takes_bills() || !pipeline_.has_room(2)) return false;
  if (asking) announce_asking();
  pipeline_.output().append(*entry.command);
  pipeline_.push(std::move(entry));
  schedule_flush();
  return true;
}

// In a cluster its keys may have moved meanwhile.
void Store::Session::refund_anywhere(std::span<const Refund> refunds) {
  if (common_ != nullptr) return common_->cluster.refund(refunds);
  refund(refunds);
}

// Once for each.
bool Store::Session::send_again(Pipeline::Entry& entry) {
  if (std::exchange(entry.resent, true) || !pipeline_.has_room()) return false;
  pipeline_.output().append(*entry.command);
  pipeline_.push(std::move(entry));
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
  pipeline_.push({.purpose = purpose, .command = {}});
  count(stats_.script_loads);
}

// The coroutine goes on inside this call; it may ask again, or stop the store.
void Store::Session::finish(Call& call, net::ErrorCode error) {
  if (error && common_ == nullptr) count(stats_.failures);  // a cluster counts bills, not their parts
  call.error = error;
  if (call.ends_wait()) call.caller.resume();
}

// Calls that were under way together fail together: one stall is one failure, however many it meets.
void Store::Session::note_failure(net::ErrorCode error, Pipeline::Time asked) {
  if (state() != StoreState::Up || !is_of_server(error)) return;
  if (error == StoreError::Timeout) last_error_ = "no answer within " + base::to_string(settings_.timeout);
  // A replica stays one, and the Sentinels know the master.
  const bool moved = sentinels_ && error == StoreError::ReadOnly;
  if (asked >= counts_since_) {
    ++failures_in_row_;
    counts_since_ = std::chrono::steady_clock::now();
  }
  if (failures_in_row_ >= tuning_.failures_to_open || moved) open_breaker();
}

void Store::Session::tell_fault(const std::string& what) {
  if (log_) log_(LogLevel::Warning, name() + " fails at " + what + ": " + last_error_);
}

void Store::Session::open_breaker() {
  count(stats_.opened);
  refusal_ = StoreError::BreakerOpen;
  state_.store(StoreState::Down, std::memory_order_relaxed);
  hang_up();
}

// Hands out how to resume whoever waits, so that the caller chooses when.
std::vector<std::coroutine_handle<>> Store::Session::fail_all(StoreError error) {
  std::vector<std::coroutine_handle<>> waiting;
  for (auto& entry : pipeline_.take_all()) {
    if (entry.purpose == Purpose::Refund) {
      count(stats_.refunds_lost);
      refunds_.note(entry.refunded, std::chrono::steady_clock::now());  // it may have been carried out
    }
    for (const auto& bill : entry.bills) {
      if (bill.call == nullptr) continue;
      if (common_ == nullptr) count(stats_.failures);
      bill.call->error = error;
      if (bill.call->ends_wait()) waiting.push_back(bill.call->caller);
    }
  }
  return waiting;
}

}  // namespace weir::redis
