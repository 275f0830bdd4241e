#include "proxy/admission/stream_meter.hpp"

#include "weir/limit/slot_hash.hpp"

#include <algorithm>
#include <utility>

namespace weir::proxy {

void StreamMeter::add(const policy::Rule& rule, Store store, const limit::Charge& charge) {
  auto more = charge;
  more.penalty = nullptr;  // a budget that runs out within a stream starts no penalty
  if (auto* known = metered(rule, store)) return known->charges.push_back(more);
  const auto mode = rule.mode == policy::Mode::Enforce ? Mode::Charges : Mode::Counts;
  metered_.push_back({&rule, store, {more}, mode, more.cost});
}

std::size_t StreamMeter::admit(std::string_view octets, base::TimePoint now) {
  using Status = http::RecordDecoder::Status;
  std::size_t passed = std::exchange(ahead_, 0);
  if (passed != 0 && !covers_event(now)) {
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
    if (!covers_event(now)) {
      ahead_ = end - passed;
      return passed;
    }
    passed = end;
  }
}

bool StreamMeter::cuts() const noexcept {
  return std::any_of(metered_.begin(), metered_.end(),
                     [](const Metered& metered) { return metered.mode == Mode::Cuts; });
}

// Charges for the event in the key table if necessary. Returns true if weir may forward the event.
bool StreamMeter::covers_event(base::TimePoint now) {
  if (cuts()) return false;
  for (auto& metered : metered_)
    if (metered.store == Store::Table && is_short(metered, now)) extend_here(metered, now);
  const auto is_short_one = [&](const Metered& metered) { return is_short(metered, now); };
  return !cuts() && std::none_of(metered_.begin(), metered_.end(), is_short_one);
}

limit::Cost StreamMeter::first_step(const Metered& metered, limit::Cost needed) noexcept {
  return std::max(needed, std::min({metered.covered / 4, metered.next, limit::kMaxCost - metered.covered}));
}

// Records a charge of `cost`. REQUIRES: memory for one more element of `metered.extras`.
void StreamMeter::note(Metered& metered, Extra& extra, limit::Cost cost) {
  metered.covered += cost;
  metered.next = 2 * cost;
  for (const auto& outcome : extra.outcomes) extra.costs.push_back(outcome.allowed ? cost : 0);
  if (metered.extras.size() < kMostExtras) return metered.extras.push_back(extra);
  auto& last = metered.extras.back().costs;
  for (std::size_t i = 0; i < last.size(); ++i) last[i] += extra.costs[i];
}

// Must be called if the budget does not admit the event. A rule with `cut` then ends the stream. Any other
// rule only counts events from now on.
void StreamMeter::give_up(Metered& metered) noexcept {
  metered.mode = metered.rule->settlement->stream->cut ? Mode::Cuts : Mode::Counts;
}

// Must be called if Redis has not answered. Until kRedisPause has passed, events pass uncharged. A rule with
// `cut` and on_store_failure = "closed" ends the stream instead.
void StreamMeter::note_failure(Metered& metered) noexcept {
  worker_.counters.store_failures.add();
  metered.ask_again = worker_.clock.now() + kRedisPause;
  if (metered.rule->on_store_failure == policy::OnStoreFailure::Closed &&
      metered.rule->settlement->stream->cut)
    metered.mode = Mode::Cuts;
}

void StreamMeter::extend_here(Metered& metered, base::TimePoint now) {
  const auto needed = cost_of(events_, *metered.rule->settlement) - metered.covered;
  for (auto step = first_step(metered, needed);; step = std::max(needed, step / 2)) {
    auto charges = metered.charges;
    for (auto& charge : charges) charge.cost = step;
    Extra extra{now, {}};
    extra.outcomes.resize(charges.size());
    // reserved before the charge, so that note() cannot fail after it
    metered.extras.reserve(metered.extras.size() + 1);
    if (worker_.table.charge({charges.data(), charges.size()}, now,
                             {extra.outcomes.data(), extra.outcomes.size()})) {
      note(metered, extra, step);
      return;
    }
    if (step == needed) return give_up(metered);
  }
}

net::Task<void> StreamMeter::charge_in_redis(base::TimePoint now) {
  for (auto& metered : metered_)
    if (metered.store == Store::Redis && is_short(metered, now)) co_await extend_in_redis(metered);
}

net::Task<void> StreamMeter::extend_in_redis(Metered& metered) {
  const auto needed = cost_of(events_, *metered.rule->settlement) - metered.covered;
  for (auto step = first_step(metered, needed);; step = std::max(needed, step / 2)) {
    auto charges = metered.charges;
    for (auto& charge : charges) charge.cost = step;
    Extra extra{};
    extra.outcomes.resize(charges.size());
    metered.extras.reserve(metered.extras.size() + 1);
    auto unanswered = limit::all_charges(charges.size());
    const std::span<const limit::Charge> asked{charges.data(), charges.size()};
    const std::span<limit::Outcome> outcomes{extra.outcomes.data(), extra.outcomes.size()};
    const auto ec = co_await worker_.redis->charge(asked, outcomes, extra.at, unanswered);
    if (ec) {
      note_failure(metered);
      co_return;
    }
    const bool admitted = extra.outcomes.front().allowed;
    if (admitted) {
      note(metered, extra, step);
      co_return;
    }
    if (step == needed) {
      give_up(metered);
      co_return;
    }
  }
}

void StreamMeter::stop_charging() noexcept {
  for (auto& metered : metered_) metered.mode = Mode::Counts;
}

limit::Cost StreamMeter::cost_of(std::uint64_t events, const policy::Settlement& settlement) noexcept {
  const auto most = limit::kMaxCost / settlement.stream->per_event;
  return events >= most ? limit::kMaxCost : events * settlement.stream->per_event;
}

StreamMeter::Metered* StreamMeter::metered(const policy::Rule& rule, Store store) noexcept {
  const auto found = std::find_if(metered_.begin(), metered_.end(), [&](const Metered& one) {
    return one.rule == &rule && one.store == store;
  });
  return found == metered_.end() ? nullptr : &*found;
}

limit::Cost StreamMeter::settle_extras(const Metered& metered, const limit::Key& key, limit::Cost beyond,
                                       base::TimePoint now) {
  const auto same = std::find_if(metered.charges.begin(), metered.charges.end(),
                                 [&](const limit::Charge& one) { return one.key == key; });
  const auto which = static_cast<std::size_t>(same - metered.charges.begin());
  for (const auto& extra : metered.extras) {
    auto charge = metered.charges[which];
    charge.cost = extra.costs[which];
    const auto kept = std::min(beyond, charge.cost);
    beyond -= kept;
    if (kept == charge.cost) continue;
    const auto& outcome = extra.outcomes[which];
    if (metered.store == Store::Redis)
      worker_.redis->settle(charge, extra.at + base::Duration(outcome.ahead), kept);
    else
      worker_.table.settle(charge, {.charged_at = extra.at, .actual = kept, .now = now}, outcome.overflow);
  }
  return beyond;
}

}  // namespace weir::proxy
