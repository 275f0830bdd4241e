#include "weir/limit/penalty.hpp"

#include <algorithm>

namespace weir::limit {

namespace {

// Returns true if a violation or penalty at the instant `at` still counts at `now`.
bool counts(const Penalty& penalty, base::TimePoint at, base::TimePoint now) noexcept {
  return now - at < penalty.forget;
}

auto still_counts(const Penalty& penalty, base::TimePoint now) noexcept {
  return [&penalty, now](base::TimePoint at) { return counts(penalty, at, now); };
}

}  // namespace

base::Duration length_of(const Penalty& penalty, std::size_t earlier) noexcept {
  auto length = penalty.first;
  for (; earlier != 0 && length < penalty.most && penalty.grows > 1; --earlier) length *= penalty.grows;
  return std::min(length, penalty.most);
}

std::size_t begins_kept(const Penalty& penalty) noexcept {
  std::size_t kept = 0;
  if (penalty.grows > 1)
    for (auto length = penalty.first; length < penalty.most; length *= penalty.grows) ++kept;
  return kept;
}

base::Duration penalty_left(const PenaltyState& state, base::TimePoint now) noexcept {
  return std::max(state.end - now, base::Duration{0});
}

std::size_t violations_at(const Penalty& penalty, const PenaltyState& state, base::TimePoint now) noexcept {
  return static_cast<std::size_t>(
      std::count_if(state.violations.begin(), state.violations.end(), still_counts(penalty, now)));
}

bool violate(const Penalty& penalty, PenaltyState& state, base::TimePoint now) {
  const auto live = still_counts(penalty, now);
  const bool begins = violations_at(penalty, state, now) + 1 >= penalty.after;
  if (!begins) {
    state.violations.reserve(state.violations.size() + 1);
    std::erase_if(state.violations, [&](base::TimePoint at) { return !live(at); });
    state.violations.push_back(now);
    return false;
  }
  const auto kept = begins_kept(penalty);
  if (kept != 0) state.begins.reserve(state.begins.size() + 1);
  std::erase_if(state.begins, [&](base::TimePoint at) { return !live(at); });
  state.end = now + length_of(penalty, state.begins.size());
  state.violations.clear();
  if (kept != 0) state.begins.push_back(now);
  if (state.begins.size() > kept)
    state.begins.erase(state.begins.begin(), state.begins.end() - static_cast<std::ptrdiff_t>(kept));
  return true;
}

base::TimePoint penalty_forgotten_at(const Penalty& penalty, const PenaltyState& state) noexcept {
  auto latest = state.end;
  for (const auto* times : {&state.violations, &state.begins})
    for (const auto at : *times) latest = std::max(latest, at + penalty.forget);
  return latest;
}

void refuse_by_penalty(Outcome& outcome, base::Duration left) noexcept {
  outcome.allowed = false;
  outcome.remaining = 0;
  outcome.delay = base::Duration{0};
  outcome.violations = 0;
  outcome.penalty_left = left;
  outcome.retry_after = std::max(outcome.retry_after, left);
  outcome.more_after = std::max(outcome.more_after, outcome.retry_after);
  outcome.reset_after = std::max(outcome.reset_after, left);
}

}  // namespace weir::limit
