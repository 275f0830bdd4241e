#include "proxy/admission/settlements.hpp"

#include "weir/http/grpc.hpp"
#include "weir/http/grpc_status.hpp"

#include <algorithm>
#include <utility>

namespace weir::proxy {

namespace {

using observe::Settled;
using policy::ReportedCost;
using policy::Settlement;

bool is_coded(const http::ResponseHead& head) noexcept {
  const auto* coding = http::find_field(head.fields, "content-encoding");
  return coding != nullptr && !http::equal_ignoring_case(coding->value, "identity");
}

}  // namespace

template <class Visit>
void Settlements::for_each_charge(Visit visit) {
  for (const auto& bill_charge : charged_bills_) {
    const auto& bill = *bill_charge.bill;
    for (std::size_t i = 0; i < bill.charges().size(); ++i)
      if (bill.outcomes()[i].allowed && bill.charges()[i].cost != 0) visit(OpenCharge{bill_charge, i});
  }
}

template <class Visit>
void Settlements::for_each_settlement(Visit visit) {
  for_each_charge([&](const OpenCharge& open) {
    if (const auto& settlement = open.rule().settlement) visit(open, *settlement);
  });
}

void Settlements::begin(policy::Bill& bill, Store store, base::TimePoint charged_at) {
  charged_bills_.push_back({&bill, store, charged_at});
  is_call_ = http::is_grpc(buffers_.head.fields);
  for_each_settlement([this](const OpenCharge&, const Settlement& settlement) {
    wait_ = Wait::Answer;
    call_open_ = call_open_ || is_by_call(settlement);
    const bool by_bytes = settlement.kind == Settlement::Kind::Bytes;
    bytes_open_ = bytes_open_ || by_bytes;
    needs_head_ = needs_head_ || !by_bytes || !settlement.charged.empty();
  });
}

void Settlements::overdraw(policy::Bill& bill, Store store, base::TimePoint checked_at, base::TimePoint now,
                           limit::ChargeSet positions) {
  now_ = now;
  const ChargedBill checked{&bill, store, checked_at};
  for (std::size_t i = 0; i < bill.charges().size(); ++i) {
    const auto units = bill.source(i).overdraft;
    if ((positions >> i & 1U) == 0) continue;
    const OpenCharge open{checked, i};
    if (units == 0) {
      // A rule has several charges if it applies to several descriptors. The replay matches the logged
      // overdrafts of the rule to these charges by their order. So an overdraft of 0 units is logged, too.
      if (open.rule().overdraft && buffers_.request.descriptors.size() > 1) note(open, 0, 0);
      continue;
    }
    const bool allowed = open.outcome().allowed;
    if (store == Store::Table)
      settle_here(open, units, units);
    else
      settle_in_redis(open, units, units);
    open.outcome().allowed = allowed;
    count(open, Settled::Debt);
  }
}

bool Settlements::want_body() {
  bool wanted = false;
  if (!due()) return wanted;
  for_each_settlement([&](const OpenCharge& open, const Settlement& settlement) {
    // A shadow rule must not change the answer, so it must not ask for an uncompressed body.
    const bool enforced = open.rule().mode == policy::Mode::Enforce;
    wanted = wanted || (settlement.kind == Settlement::Kind::Json && enforced);
  });
  return wanted;
}

bool Settlements::answered(unsigned status, const http::ResponseHead* head, base::TimePoint now) {
  wait_ = Wait::Nothing;
  status_ = status;
  now_ = now;
  if (head != nullptr && head->framing == http::Framing::Length) response_length_ = head->content_length;
  bool changed = false;
  if (call_open_) {
    const auto call = head != nullptr ? http::grpc_status_in_head(*head) : http::grpc_status_of(status);
    if (call) changed = settle_calls(*call);
    if (!call) wait_ = Wait::Body;
  }
  for_each_settlement([&](const OpenCharge& open, const Settlement& settlement) {
    if (!is_by_call(settlement)) changed = settle_by_head(open, settlement, head) || changed;
  });
  return changed;
}

void Settlements::settle_to_stated(limit::Cost actual, base::TimePoint now) {
  now_ = now;
  wait_ = Wait::Nothing;
  call_open_ = bytes_open_ = false;
  bool any = false;
  for_each_settlement([&](const OpenCharge&, const Settlement&) { any = true; });
  const bool stated = buffers_.request.stated_cost.has_value();
  for_each_charge([&](const OpenCharge& open) {
    const auto& rule = open.rule();
    const bool by_default = rule.cost_from.kind == policy::CostSource::Kind::None && (stated || !any);
    if ((rule.settlement || by_default) && !limit::holds(*open.charge().limiter))
      (void)settle_to(open, actual);
  });
}

// Settles a charge if the status and the head of the answer suffice. Returns true if the amount changed.
bool Settlements::settle_by_head(const OpenCharge& open, const Settlement& settlement,
                                 const http::ResponseHead* head) {
  if (!policy::is_charged(settlement, status_)) return settle_to(open, 0);
  if (settlement.kind == Settlement::Kind::Bytes) return false;
  if (settlement.kind == Settlement::Kind::None) {
    count(open, Settled::Charged);
    return false;
  }
  if (head == nullptr) return settle(open, {});
  if (settlement.kind == Settlement::Kind::Header)
    return settle(open, policy::reported_cost_in_head(settlement, head->fields));
  if (head->framing == http::Framing::None) return settle(open, {});
  length_ = head->framing == http::Framing::Length ? head->content_length : 0;
  const auto* type = http::find_field(head->fields, "content-type");
  format_ = type != nullptr ? http::stream_format(type->value) : std::nullopt;
  if (is_coded(*head) || (!format_ && length_ > settlement.max_body))
    return settle(open, {ReportedCost::State::Unreadable});
  if (format_) open_stream(open, settlement);
  most_ = std::max(most_, settlement.max_body);
  wait_ = Wait::Body;
  return false;
}

void Settlements::open_stream(const OpenCharge& open, const Settlement& settlement) {
  stream_costs_.add(settlement, *format_);
  if (!settlement.stream) return;
  if (!meter_) meter_.emplace(worker_, *format_);
  meter_->add(open.rule(), open.bill_charge.store, open.charge());
}

// Settles the charges that depend on the status of a gRPC call. Returns true if an amount changed.
bool Settlements::settle_calls(unsigned grpc_status) {
  bool changed = false;
  call_open_ = false;
  for_each_settlement([&](const OpenCharge& open, const Settlement& settlement) {
    if (!is_by_call(settlement)) return;
    if (policy::is_call_charged(settlement, grpc_status))
      count(open, Settled::Charged);
    else
      changed = settle_to(open, 0) || changed;
  });
  return changed;
}

bool Settlements::settle(const OpenCharge& open, const ReportedCost& reported) {
  if (reported.state == ReportedCost::State::Amount) return settle_to(open, reported.amount);
  count(open, reported.state == ReportedCost::State::Nothing ? Settled::Untold : Settled::Unreadable);
  return false;
}

// Corrects a charge to `actual` units. Returns true if this changes the charge made at admission; false if it
// changes nothing, or only what the stream meter charged later. `as`: the outcome to count in the metrics;
// nullopt: chosen by the amount.
bool Settlements::settle_to(const OpenCharge& open, limit::Cost actual, std::optional<Settled> as) {
  const auto reserved = open.charge().cost;
  const auto charged = charged_for(open);
  count(open, as                  ? *as
              : actual == charged ? Settled::Charged
              : actual == 0       ? Settled::Refunded
              : actual < charged  ? Settled::Surplus
                                  : Settled::Debt);
  auto own = actual;
  if (charged != reserved) {
    own = std::min(actual, reserved);
    own += meter_->settle_extras(*metered(open), open.charge().key, actual - own, now_);
  }
  if (own == reserved) {
    if (actual != own) note(open, actual, limit::timestamp_at(now_));
    return false;
  }
  if (open.bill_charge.store == Store::Table)
    settle_here(open, own, actual);
  else
    settle_in_redis(open, own, actual);
  return true;
}

// Returns what the stream meter has charged for the rule of this charge; null if the meter does not charge
// for this rule.
StreamMeter::Metered* Settlements::metered(const OpenCharge& open) {
  return meter_ ? meter_->metered(open.rule(), open.bill_charge.store) : nullptr;
}

// Returns how many units are charged: the reserve (the charge at admission), and what the stream meter has
// charged beyond the reserve.
limit::Cost Settlements::charged_for(const OpenCharge& open) {
  const auto* known = metered(open);
  return known != nullptr ? known->covered : open.charge().cost;
}

// Settles a stream that has reported no cost. A stream that has ended (`whole`) costs the estimate. An
// incomplete stream costs the estimate or the reserve, whichever is more.
bool Settlements::settle_to_estimate(const OpenCharge& open, bool whole) {
  const auto estimate = meter_->estimate(*open.rule().settlement);
  return settle_to(open, whole ? estimate : std::max(estimate, open.charge().cost), Settled::Estimated);
}

// Settles a stream that weir has cut. The stream costs at least the amount that it has reported so far, and
// at least its estimate. If weir cut the stream because of another rule, the stream also costs at least the
// reserve, as if the server had broken off the stream.
bool Settlements::settle_cut(const OpenCharge& open, const ReportedCost& reported) {
  const bool has_reported = reported.state == ReportedCost::State::Amount;
  auto cost = has_reported ? reported.amount : 0;
  const auto* known = metered(open);
  if (known == nullptr && !has_reported) return settle(open, reported);
  if (known != nullptr) cost = std::max(cost, meter_->estimate(*open.rule().settlement));
  if (known != nullptr && known->mode == StreamMeter::Mode::Cuts) return settle_to(open, cost, Settled::Cut);
  cost = std::max(cost, open.charge().cost);
  return settle_to(open, cost, has_reported ? std::nullopt : std::optional(Settled::Estimated));
}

// Settles a charge in the key table. The outcome then shows the present state of the key. Exception:
// `reset_after` is still measured from the time of the charge, as in all other outcomes. `actual`: the new
// cost of this charge. `total`: `actual` and the units of the stream meter's charges, for the journal.
void Settlements::settle_here(const OpenCharge& open, limit::Cost actual, limit::Cost total) {
  const auto& charge = open.charge();
  const auto charged_at = open.bill_charge.charged_at;
  auto& outcome = open.outcome();
  const bool overflow = outcome.overflow;
  limit::HybridTimestamp timestamp = 0;
  worker_.table.settle(charge, {.charged_at = charged_at, .actual = actual, .now = now_}, overflow,
                       &timestamp);
  note(open, total, timestamp);
  outcome = worker_.table.current_outcome(charge, now_, overflow);
  outcome.reset_after += now_ - charged_at;
  outcome.allowed = true;
  outcome.overflow = overflow;
}

void Settlements::note(const OpenCharge& open, limit::Cost actual,
                       limit::HybridTimestamp timestamp) noexcept {
  auto settled = amendment_of(open.charge(), now_, timestamp);
  settled.kind = observe::Amendment::Kind::Settle;
  settled.cost = actual;
  buffers_.journal.note(settled);
}

// Settles a charge in Redis without waiting for the result. So this function itself corrects `remaining` of
// the outcome, by the difference of the charge's old cost and `actual`. If all units then remain, sets the
// reset times to 0; otherwise leaves them unchanged. `actual`, `total`: as in settle_here().
void Settlements::settle_in_redis(const OpenCharge& open, limit::Cost actual, limit::Cost total) {
  note(open, total, 0);
  const auto& charge = open.charge();
  auto& outcome = open.outcome();
  worker_.redis->settle(charge, open.bill_charge.charged_at + base::Duration(outcome.ahead), actual);
  const auto most = limit::quota(*charge.limiter);
  if (actual > charge.cost)
    outcome.remaining -= std::min(outcome.remaining, actual - charge.cost);
  else
    outcome.remaining = std::min(outcome.remaining + (charge.cost - actual), most);
  if (outcome.remaining == most) outcome.reset_after = outcome.more_after = base::Duration(0);
}

// Counts the settlement once for each rule. An elastic rule has a second charge, which is settled, too, but
// not counted.
void Settlements::count(const OpenCharge& open, Settled outcome) {
  if (!open.bill_charge.bill->source(open.number).applied.counted)
    worker_.counters.settlements(open.rule().index, outcome).add();
}

void Settlements::see(std::string_view piece) {
  response_octets_ += piece.size();
  if (response_length_ != 0 && response_octets_ == response_length_) settle_whole_bytes();
  if (wait_ != Wait::Body || too_long_ || most_ == 0) return;
  if (format_) return see_stream(piece);
  auto& copy = buffers_.copy;
  too_long_ = copy.size() + piece.size() > most_ || !copy.append(piece, length_ != 0 ? length_ : most_);
  if (too_long_) return copy.clear();
  // Once the client has the last byte, it may send its next request. So the charge must be settled before.
  if (length_ != 0 && copy.size() == length_) settle_by_body(true);
}

// Passes a piece of the stream to stream_costs_, which reads the costs that the stream reports. If
// max_body_memory does not suffice, clears stream_costs_; the reported cost is then unreadable.
void Settlements::see_stream(std::string_view piece) {
  too_long_ = !stream_costs_.read(piece);
  if (too_long_) return stream_costs_.clear();
  streamed_ += piece.size();
  if (length_ != 0 && streamed_ == length_) settle_by_body(true);
}

void Settlements::complete(std::string_view trailers) {
  end_call(http::grpc_status_in_trailers(trailers));
  if (wait_ == Wait::Body) settle_by_body(true);
  settle_whole_bytes();
}

// Settles the costs in bytes before the client has the end of the answer, if the request is complete.
void Settlements::settle_whole_bytes() {
  if (request_ != nullptr && request_->complete()) settle_bytes(request_->received(), response_octets_);
}

void Settlements::settle_bytes(std::uint64_t request, std::uint64_t response) {
  if (!std::exchange(bytes_open_, false)) return;
  now_ = worker_.clock.now();
  for_each_settlement([&](const OpenCharge& open, const Settlement& settlement) {
    if (settlement.kind != Settlement::Kind::Bytes) return;
    const bool by_head = wait_ != Wait::Answer && !policy::is_charged(settlement, status_);
    // If answered() was not called, the client got an error of weir instead of an answer. The octets of the
    // error cost nothing.
    const auto answer = wait_ == Wait::Answer ? 0 : response;
    if (!by_head) (void)settle_to(open, policy::cost_of_bytes(settlement, request, answer));
  });
}

void Settlements::end_call(unsigned grpc_status) {
  if (!call_open_) return;
  now_ = worker_.clock.now();
  (void)settle_calls(grpc_status);
}

void Settlements::leave_unsettled() {
  if (wait_ == Wait::Body) settle_by_body(false);
  for_each_settlement([this](const OpenCharge& open, const Settlement& settlement) {
    if (settlement.kind == Settlement::Kind::Bytes) return;
    if (is_by_call(settlement) ? call_open_ : wait_ == Wait::Answer) count(open, Settled::Unanswered);
  });
  call_open_ = false;
  wait_ = Wait::Nothing;
}

// Returns the cost that the body reports. `whole`: the body is complete, or weir has cut it; otherwise the
// cost is unreadable. The cost is also unreadable if the memory for the body ran out, or if the body is
// longer than the rule's max_body. Streams may be longer.
ReportedCost Settlements::cost_in_body(const Settlement& settlement, bool whole) {
  const ReportedCost unreadable{ReportedCost::State::Unreadable};
  if (!whole || (format_ && too_long_)) return unreadable;
  if (format_) return stream_costs_.cost(settlement);
  const bool fits = !too_long_ && buffers_.copy.size() <= settlement.max_body;
  return fits ? policy::reported_cost_in_body(settlement, buffers_.copy.view()) : unreadable;
}

// Settles the charges that the head did not settle. `whole`: true if the body is complete.
void Settlements::settle_by_body(bool whole) {
  wait_ = Wait::Nothing;
  now_ = worker_.clock.now();
  const bool cut = meter_ && meter_->cuts();
  for_each_settlement([&](const OpenCharge& open, const Settlement& settlement) {
    if (is_by_call(settlement) || settlement.kind != Settlement::Kind::Json) return;
    if (!policy::is_charged(settlement, status_)) return;
    // settle_by_head() has already counted a body of this length as unreadable
    if (!format_ && length_ > settlement.max_body) return;
    const auto reported = cost_in_body(settlement, whole || cut);
    if (cut)
      (void)settle_cut(open, reported);
    else if (reported.state != ReportedCost::State::Amount && meter_ && settlement.stream)
      (void)settle_to_estimate(open, whole);
    else
      (void)settle(open, reported);
  });
  stream_costs_.clear();
}

}  // namespace weir::proxy
