#include "proxy/admission/stream_meter.hpp"

#include "weir/limit/slot_hash.hpp"

#include <algorithm>
#include <utility>

namespace weir::proxy {

void StreamMeter::add(const policy::Settlement& settlement, Store store, const limit::Charge& charge,
                      bool enforced) {
  auto more = charge;
  more.penalty = nullptr;  // the end of a budget within a stream is no violation
  if (auto* known = metered(settlement, store)) return known->charges.push_back(more);
  metered_.push_back({&settlement, store, {more}, enforced, more.cost});
}

std::size_t StreamMeter::admit(std::string_view octets) {
  using Status = http::RecordDecoder::Status;
  std::size_t passed = std::exchange(ahead_, 0);
  if (passed != 0 && !covers_event()) {
    ahead_ = passed;
    return 0;
  }
  for (auto end = passed;;) {
    const auto piece = decoder_.next(octets.substr(end));
    end += piece.used;
    if (piece.status == Status::NeedMore) return octets.size();
    if (piece.status == Status::Data) {
      const auto first = piece.data.find_first_not_of(" \t\r\n");
      if (blank_ && first != std::string_view::npos) is_event_ = piece.data[first] == '{';
      blank_ = blank_ && first == std::string_view::npos;
      continue;
    }
    if (is_event_) ++events_;
    blank_ = true;
    is_event_ = false;
    if (!covers_event()) {
      ahead_ = end - passed;
      return passed;
    }
    passed = end;
  }
}

// Returns true if the charges cover the events so far.
bool StreamMeter::covers_event() {
  if (cuts_) return false;
  for (auto& metered : metered_)
    if (metered.store == Store::Table && is_short(metered)) extend_here(metered);
  const auto is_short_one = [this](const Metered& metered) { return is_short(metered); };
  return !cuts_ && std::none_of(metered_.begin(), metered_.end(), is_short_one);
}

limit::Cost StreamMeter::first_step(const Metered& metered, limit::Cost needed) noexcept {
  return std::max(needed, std::min({metered.covered / 4, metered.next, limit::kMaxCost - metered.covered}));
}

// Records a charge. REQUIRES: memory for one more.
void StreamMeter::note(Metered& metered, const Extra& extra) {
  metered.covered += extra.cost;
  metered.next = 2 * extra.cost;
  if (metered.extras.size() < kMostExtras)
    metered.extras.push_back(extra);
  else
    metered.extras.back().cost += extra.cost;
}

void StreamMeter::give_up(Metered& metered) noexcept {
  metered.charges_more = false;
  cuts_ = cuts_ || metered.settlement->stream->cut;
}

void StreamMeter::extend_here(Metered& metered) {
  const auto needed = cost_of(events_, *metered.settlement) - metered.covered;
  const auto now = worker_.clock.now();
  for (auto step = first_step(metered, needed);; step = std::max(needed, step / 2)) {
    auto charges = metered.charges;
    for (auto& charge : charges) charge.cost = step;
    Extra extra{step, now, {}};
    extra.outcomes.resize(charges.size());
    metered.extras.reserve(metered.extras.size() + 1);  // a charge must not be forgotten
    if (worker_.table.charge({charges.data(), charges.size()}, now,
                             {extra.outcomes.data(), extra.outcomes.size()})) {
      note(metered, extra);
      return;
    }
    if (step == needed) return give_up(metered);
  }
}

net::Task<void> StreamMeter::charge_in_redis() {
  for (auto& metered : metered_)
    if (metered.store == Store::Redis && is_short(metered)) co_await extend_in_redis(metered);
}

net::Task<void> StreamMeter::extend_in_redis(Metered& metered) {
  const auto needed = cost_of(events_, *metered.settlement) - metered.covered;
  for (auto step = first_step(metered, needed);; step = std::max(needed, step / 2)) {
    auto charges = metered.charges;
    for (auto& charge : charges) charge.cost = step;
    Extra extra{step, {}, {}};
    extra.outcomes.resize(charges.size());
    metered.extras.reserve(metered.extras.size() + 1);
    auto unasked = limit::all_lines(charges.size());
    const std::span<const limit::Charge> asked{charges.data(), charges.size()};
    const std::span<limit::Outcome> outcomes{extra.outcomes.data(), extra.outcomes.size()};
    const auto ec = co_await worker_.redis->charge(asked, outcomes, extra.at, unasked);
    if (ec) {
      metered.charges_more = false;  // Redis is away: the end of the stream settles the rest
      co_return;
    }
    const bool admitted = extra.outcomes.front().allowed;
    if (admitted) {
      note(metered, extra);
      co_return;
    }
    if (step == needed) {
      give_up(metered);
      co_return;
    }
  }
}

void StreamMeter::stop_charging() noexcept {
  cuts_ = false;
  for (auto& metered : metered_) metered.charges_more = false;
}

limit::Cost StreamMeter::cost_of(std::uint64_t events, const policy::Settlement& settlement) noexcept {
  const auto most = limit::kMaxCost / settlement.stream->per_event;
  return events >= most ? limit::kMaxCost : events * settlement.stream->per_event;
}

StreamMeter::Metered* StreamMeter::metered(const policy::Settlement& settlement, Store store) noexcept {
  const auto found = std::find_if(metered_.begin(), metered_.end(), [&](const Metered& one) {
    return one.settlement == &settlement && one.store == store;
  });
  return found == metered_.end() ? nullptr : &*found;
}

}  // namespace weir::proxy
