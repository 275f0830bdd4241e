#include "redis/store/deny_cache.hpp"

#include "redis/scripts/bill.hpp"

#include <algorithm>
#include <cassert>
#include <variant>

namespace weir::redis {

namespace {

// Returns true if only time and refunds can reduce the usage of this limiter. Returns false for queues and
// concurrency limits.
bool is_cacheable(const limit::Limiter& limiter) noexcept {
  return !std::holds_alternative<limit::LeakyBucket>(limiter) && !limit::holds(limiter);
}

// Refuses by the client's penalty if the penalty certainly still runs. Returns false if Redis must decide.
// If no penalty runs, Redis must decide, even if another rule also refuses the request: a refusal by the
// limiter is a violation, which Redis counts.
bool decide_by_penalty(base::TimePoint clock, base::TimePoint end, base::Duration unsure,
                       limit::Outcome& outcome) noexcept {
  const auto left = end - clock;
  if (left <= base::Duration{0}) return false;
  limit::refuse_by_penalty(outcome, left);
  return left > unsure;
}

}  // namespace

void DenyCache::remember(std::span<const limit::Charge> bill, std::span<const std::int64_t> answers,
                         const RoundTrip& trip) noexcept {
  assert(answers.size() == script_lines(bill) * kAnswerNumbers);
  for (const auto& charge : bill) {
    const auto limiter_answer = answers.first(kAnswerNumbers);
    answers = answers.subspan(kAnswerNumbers);
    std::int64_t penalty_end = 0;
    if (charge.penalty != nullptr) {
      penalty_end = answers[0];
      answers = answers.subspan(kAnswerNumbers);
    }
    if (!is_cacheable(*charge.limiter)) continue;
    const auto set = std::span(entries_).subspan(set_of(charge.key), kWays);
    const auto older = [](const Entry& a, const Entry& b) { return a.trip.sent < b.trip.sent; };
    // An answer about a gap (free time slots) of a bucket says nothing about the next charge, so it is not
    // stored.
    if (has_slots(charge) && limiter_answer[2] != 0) {
      forget({&charge, 1});
      continue;
    }
    auto entry = std::find_if(set.begin(), set.end(), [&](const Entry& p) { return p.key == charge.key; });
    if (entry == set.end()) entry = std::min_element(set.begin(), set.end(), older);
    *entry = {.key = charge.key,
              .limiter = charge.limiter,
              .cost = limit::units_to_fit(charge),
              .answer = {},
              .penalty_end = base::TimePoint(base::Duration(penalty_end)),
              .trip = trip,
              .renewed = {}};
    std::copy(limiter_answer.begin(), limiter_answer.end(), entry->answer.begin());
  }
}

void DenyCache::forget(std::span<const limit::Charge> bill) noexcept {
  for (const auto& charge : bill)
    for (Entry& entry : std::span(entries_).subspan(set_of(charge.key), kWays))
      if (entry.key == charge.key) entry.limiter = nullptr;
}

std::optional<base::TimePoint> DenyCache::refuses(std::span<const limit::Charge> bill,
                                                  std::span<limit::Outcome> outcomes, Time now) noexcept {
  bool refused = false;
  base::TimePoint first;
  for (std::size_t i = 0; i < bill.size(); ++i) {
    const auto& charge = bill[i];
    const Entry* entry = find(charge, now);
    if (entry == nullptr) return std::nullopt;
    using std::chrono::ceil, std::chrono::floor;
    const auto since = floor<base::Duration>(now - entry->trip.received);
    const auto limiter_answer = answer_after(*charge.limiter, entry->answer, since);
    const auto clock = entry->trip.server_now + since;
    if (i == 0) first = clock;
    auto outcome = outcome_of(charge, clock, limiter_answer);
    if (!outcome) return std::nullopt;
    // Redis's clock may be ahead of `clock` by up to `unsure`. If the wait is at most this long, Redis might
    // admit the bill now, so the cache does not refuse it.
    const auto unsure = ceil<base::Duration>(entry->trip.received - entry->trip.sent + since / kPace);
    if (charge.penalty != nullptr && !decide_by_penalty(clock, entry->penalty_end, unsure, *outcome))
      return std::nullopt;
    outcomes[i] = *outcome;
    outcomes[i].ahead = clock_ahead(clock, first);
    refused = refused || (charge.enforced && !outcome->allowed && outcome->retry_after > unsure);
  }
  return refused ? std::optional(first) : std::nullopt;
}

const DenyCache::Entry* DenyCache::find(const limit::Charge& charge, Time now) noexcept {
  for (Entry& entry : std::span(entries_).subspan(set_of(charge.key), kWays)) {
    if (entry.key != charge.key || entry.limiter != charge.limiter) continue;
    const auto age = now - entry.trip.sent;
    if (age >= kKnown || refunds_.noted_since(charge.key, entry.trip.sent)) return nullptr;
    if (!answers_charge(charge, entry.cost)) return nullptr;
    if (age < kFresh || now - entry.renewed < kRenewal) return &entry;
    entry.renewed = now;
    return nullptr;
  }
  return nullptr;
}

void DenyCache::forget_all() noexcept {
  std::fill(entries_.begin(), entries_.end(), Entry{});
}

}  // namespace weir::redis
