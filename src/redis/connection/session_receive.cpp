// Handles replies on a session's connection: finds the calls that they answer, and detects failures of the
// server.
#include "redis/cluster/cluster.hpp"
#include "redis/connection/classify.hpp"
#include "redis/connection/session.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace weir::redis {

namespace {

using Purpose = Pipeline::Purpose;

// Returns true if an error is about the server and not about a single bill. Only such errors open the circuit
// breaker.
bool is_of_server(const net::ErrorCode& error) noexcept {
  return error != StoreError::ServerError && error != StoreError::CommandDenied &&
         error != StoreError::Overloaded;
}

// Returns how many charges Redis may have made for a bill whose reply weir could not read. weir cannot refund
// these charges.
std::size_t unknown_charges(std::span<const limit::Charge> charges) noexcept {
  return static_cast<std::size_t>(
      std::count_if(charges.begin(), charges.end(),
                    [](const limit::Charge& charge) { return charge.enforced && charge.cost != 0; }));
}

// Returns false if the reply cannot be the answer to the command, because replies and commands no longer
// match. Returns true for an error, because any command may get an error.
bool answers(const Reply& reply, const Pipeline::Entry& entry) noexcept {
  if (reply.kind == Reply::Kind::Error) return true;
  switch (entry.purpose) {
    case Purpose::Charge:
    case Purpose::Refund:
      return is_answer_to(entry.number, reply);
    case Purpose::LoadCharge:
    case Purpose::LoadRefund:
      return reply.kind == Reply::Kind::Text;  // the reply is the script's SHA-1
    case Purpose::Asking:
      return reply.kind == Reply::Kind::Status;
  }
  return false;
}

}  // namespace

// Handles the replies that have arrived. Returns false and sets last_error_ if a reply is malformed or does
// not match its command. Replies may then have been lost or repeated, so that later calls would get the
// replies to other calls. The caller must then end the connection, and all its calls fail.
bool Store::Session::handle_replies() {
  const auto now = std::chrono::steady_clock::now();
  for (;;) {
    const auto next = reader_.next();
    const auto* first = pipeline_.first();
    const bool unsolicited = first == nullptr && reader_.has_begun();
    if (next == ReplyReader::Next::Incomplete && !unsolicited) {
      // Sends bills and refunds that had to wait because the pipeline was full.
      if (pipeline_.gathers()) schedule_flush();
      return true;
    }
    const bool sound = next == ReplyReader::Next::Ready && first != nullptr;
    if (!sound || !answers(reader_.reply(), *first)) {
      last_error_ = sound ? "an unexpected reply" : "the peer does not speak the Redis protocol";
      return false;
    }
    handle(*pipeline_.pop(now), reader_.reply());
    // Stops here if the connection has ended: the remaining replies belong to no call.
    if (state() != StoreState::Up) return true;
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
      return;  // if the node denies ASKING, it answers the next command with an error
  }
}

// Answers every call of the entry, even if an exception is thrown. Nothing else refers to these calls, so an
// unanswered call would wait forever.
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
  BillPosition position{0, entry.bills.size(), 0, 0};
  for (const auto& bill : entry.bills) position.lines += script_lines(bill.lines());
  std::vector<BillPosition> late;
  for (auto& bill : entry.bills) {
    const auto lines = script_lines(bill.lines());
    if (bill.call != nullptr)
      handle_bill(*bill.call, position, entry.sent, reply);
    else
      late.push_back(position);
    bill.call = nullptr;
    ++position.bill;
    position.first_line += lines;
  }
  // Refunds the last of the late bills first, because a queue can refund only the departure that it promised
  // last.
  for (auto at = late.rbegin(); at != late.rend(); ++at) refund_late_reply(entry.bills[at->bill], *at, reply);
}

// Handles an error that Redis returned for a whole script call. If a command is denied and several bills
// (requests) share the call, sends each bill again in a call of its own. Each bill then gets a new permit ID,
// because permits that the failed call took remain in Redis until they expire.
void Store::Session::handle_fault(Pipeline::Entry& entry, const Reply& reply) {
  const auto error = classify(reply.text);
  if (error == StoreError::NoScript) load_again(Purpose::LoadCharge);
  for (auto& bill : entry.bills) {
    if (bill.call == nullptr) continue;
    const bool shared = error == StoreError::CommandDenied && entry.bills.size() > 1;
    if (shared) bill.call->alone = true;
    if (shared) bill.call->permit = permit_renewer_.next_permit();
    bool sent = (error == StoreError::NoScript || shared) && ask_again(*bill.call);
    if (!sent && common_ != nullptr) sent = common_->cluster.resend(*bill.call, entry, reply.text, *this);
    if (!sent) {
      last_error_ = advised(reply.text);
      if (!is_of_server(error))
        report_fault(Faults::kinds_of(bill.call->charges), Faults::names_of(bill.call->charges));
      note_failure(error, entry.sent);
      finish(*bill.call, error);
    }
    bill.call = nullptr;
  }
}

void Store::Session::handle_bill(Call& call, const BillPosition& position, Pipeline::Time sent,
                                 const Reply& reply) {
  const auto reading =
      read_outcomes(reply, position, call.charges, call.outcomes, call.server_now, call.peeks);
  if (reading == ReplyReading::OtherTime) {
    learn_server_time(call.server_now);
    if (ask_again(call)) return;
  }
  if (reading != ReplyReading::Answer) {
    last_error_ = "an unexpected reply to a script";
    if (reading == ReplyReading::Nonsense && !call.peeks)
      count(stats_.refunds_lost, unknown_charges(call.charges));
    note_failure(StoreError::BadReply, sent);
    return finish(call, StoreError::BadReply);
  }
  failures_in_row_ = 0;
  attempts_ = 0;
  if (!faults_.none()) faults_.note_success(Faults::kinds_of(call.charges));
  if (call.peeks) return finish(call, {});
  permit_renewer_.keep(call);
  if (const auto answers = answers_of_refused(reply, position, call.charges); !answers.empty())
    denied_.remember(call.charges, answers, {sent, std::chrono::steady_clock::now(), call.server_now});
  else
    denied_.forget(call.charges);
  finish(call, {});
}

// Refunds a bill (the charges of one request) whose answer came after its deadline, because that request was
// not admitted.
void Store::Session::refund_late_reply(const Pipeline::Bill& bill, const BillPosition& position,
                                       const Reply& reply) {
  const auto lines = bill.lines();
  std::array<limit::Outcome, limit::kMaxCharges> outcomes;
  base::TimePoint charged_at;
  const auto answers = std::span(outcomes).first(lines.size());
  const auto reading = read_outcomes(reply, position, lines, answers, charged_at);
  if (reading == ReplyReading::Nonsense) count(stats_.refunds_lost, unknown_charges(lines));
  if (reading != ReplyReading::Answer) return;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].enforced && !answers[i].allowed) return;  // nothing was charged
  std::vector<Refund> refunds;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!answers[i].allowed || lines[i].cost == 0) continue;
    refunds.push_back(refund_of(lines[i], charged_at, answers[i]));
    refunds.back().hold = permit_renewer_.of(bill.permit);
  }
  if (!refunds.empty()) refund_anywhere(refunds);
}

void Store::Session::handle_refund(Pipeline::Entry entry, const Reply& reply) {
  const bool failed = reply.kind == Reply::Kind::Error;
  if (failed) drop_released(entry);
  if (entry.refund_count == 0) return;
  if (failed && classify(reply.text) == StoreError::NoScript && !entry.resent) {
    load_again(Purpose::LoadRefund);
    if (send_again(entry)) return;
  }
  if (failed && common_ != nullptr && common_->cluster.resend(entry, reply.text, *this)) return;
  refunds_.note(entry.refunded, std::chrono::steady_clock::now());
  if (!faults_.none() && !failed) faults_.note_success(Faults::kRefunds);
  constexpr std::size_t kNumbers = 3;  // how many numbers a reply of refund.lua has
  if (!failed && reply.numbers.size() == kNumbers) return count(stats_.gaps_lost, gaps_lost(reply));
  last_error_ = failed ? advised(reply.text) : "an unexpected reply to a script";
  report_fault(Faults::kRefunds, "refunding");
  count(stats_.refunds_lost, entry.refund_count);
}

// Sets the call's result and resumes its coroutine, which may send another bill or stop the store.
void Store::Session::finish(Call& call, net::ErrorCode error) {
  // A call of a cluster (`waiting` is set) is only a part of a bill. The cluster counts the failed bill
  // instead.
  if (error && call.waiting == nullptr) count(stats_.failures);
  call.error = error;
  if (call.ends_wait()) call.caller.resume();
}

// Counts a failure. If calls that waited at the same time fail, they count as one failure, because one stall
// of Redis is enough to make all of them fail.
void Store::Session::note_failure(net::ErrorCode error, Pipeline::Time asked) {
  if (state() != StoreState::Up || !is_of_server(error)) return;
  if (error == StoreError::Timeout) last_error_ = "no reply within " + base::to_string(settings_.timeout);
  // ReadOnly means that the server is a replica now, and will hardly become a master again soon. So weir
  // drops the connection and asks the Sentinels for the present master.
  const bool moved = sentinels_ && error == StoreError::ReadOnly;
  if (asked >= counts_since_) {
    ++failures_in_row_;
    counts_since_ = std::chrono::steady_clock::now();
  }
  if (failures_in_row_ >= tuning_.failures_to_open || moved) open_breaker();
}

void Store::Session::report_fault(Faults::Kinds kinds, const std::string& what) {
  if (log_ && faults_.note(kinds, std::chrono::steady_clock::now()))
    log_(LogLevel::Warning, name() + " fails at " + what + ": " + last_error_);
}

void Store::Session::open_breaker() {
  count(stats_.opened);
  drop_connection(StoreError::BreakerOpen);
}

}  // namespace weir::redis
