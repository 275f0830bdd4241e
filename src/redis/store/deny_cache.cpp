#include "redis/store/deny_cache.hpp"

#include <algorithm>
#include <cassert>
#include <variant>

namespace weir::redis {

namespace {

// Returns true if only refunds move a state of this limiter earlier.
bool lasts(const limit::Limiter& limiter) noexcept {
  return !std::holds_alternative<limit::LeakyBucket>(limiter) && !limit::holds(limiter);
}

}  // namespace

void DenyCache::remember(std::span<const limit::Charge> bill, std::span<const std::int64_t> answers,
                         const Trip& trip) noexcept {
  assert(answers.size() == bill.size() * kAnswerNumbers);
  for (std::size_t i = 0; i < bill.size(); ++i) {
    const auto& line = bill[i];
    if (!lasts(*line.limiter)) continue;
    const auto told = answers.subspan(i * kAnswerNumbers, kAnswerNumbers);
    const auto set = std::span(places_).subspan(set_of(line.key), kWays);
    const auto older = [](const Place& a, const Place& b) { return a.trip.sent < b.trip.sent; };
    if (has_slots(line) && told[2] != 0) {  // it found a gap, which predicts nothing about the next charge
      forget({&line, 1});
      continue;
    }
    auto place = std::find_if(set.begin(), set.end(), [&](const Place& p) { return p.key == line.key; });
    if (place == set.end()) place = std::min_element(set.begin(), set.end(), older);
    *place = {.key = line.key,
              .limiter = line.limiter,
              .cost = line.cost,
              .answer = {},
              .trip = trip,
              .renewed = {}};
    std::copy(told.begin(), told.end(), place->answer.begin());
  }
}

void DenyCache::forget(std::span<const limit::Charge> bill) noexcept {
  for (const auto& line : bill)
    for (Place& place : std::span(places_).subspan(set_of(line.key), kWays))
      if (place.key == line.key) place.limiter = nullptr;
}

std::optional<base::TimePoint> DenyCache::refuses(std::span<const limit::Charge> bill,
                                                  std::span<limit::Outcome> outcomes, Time now) noexcept {
  bool refused = false;
  base::TimePoint first;
  for (std::size_t i = 0; i < bill.size(); ++i) {
    const auto& line = bill[i];
    const Place* place = find(line, now);
    if (place == nullptr) return std::nullopt;
    using std::chrono::ceil, std::chrono::floor;
    const auto since = floor<base::Duration>(now - place->trip.received);
    const auto told = told_later(*line.limiter, place->answer, since);
    const auto clock = place->trip.server_now + since;
    if (i == 0) first = clock;
    const auto outcome = outcome_of(line, clock, told);
    if (!outcome) return std::nullopt;
    outcomes[i] = *outcome;
    outcomes[i].ahead = clock_ahead(clock, first);
    // The bill is still refused even if Redis read its clock at `sent`.
    const auto unsure = ceil<base::Duration>(place->trip.received - place->trip.sent + since / kPace);
    refused = refused || (line.enforced && !outcome->allowed && outcome->retry_after > unsure);
  }
  return refused ? std::optional(first) : std::nullopt;
}

const DenyCache::Place* DenyCache::find(const limit::Charge& line, Time now) noexcept {
  for (Place& place : std::span(places_).subspan(set_of(line.key), kWays)) {
    if (place.key != line.key || place.limiter != line.limiter) continue;
    const auto age = now - place.trip.sent;
    if (age >= kKnown || refunds_.noted_since(line.key, place.trip.sent)) return nullptr;
    if (!tells(line, place.cost)) return nullptr;
    if (age < kFresh || now - place.renewed < kRenewal) return &place;
    place.renewed = now;
    return nullptr;
  }
  return nullptr;
}

void DenyCache::forget_all() noexcept {
  std::fill(places_.begin(), places_.end(), Place{});
}

}  // namespace weir::redis
