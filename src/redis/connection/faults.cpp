#include "redis/connection/faults.hpp"

#include "weir/limit/limiter.hpp"

#include <algorithm>

namespace weir::redis {

namespace {

constexpr std::chrono::seconds kPause{10};

bool is_within(Faults::Kinds some, Faults::Kinds all) noexcept {
  return (some & all) == some;
}

}  // namespace

Faults::Kinds Faults::kinds_of(std::span<const limit::Charge> lines) noexcept {
  Kinds kinds = 0;
  for (const auto& line : lines) kinds |= Kinds{1} << line.limiter->index();
  return kinds;
}

std::string Faults::names_of(std::span<const limit::Charge> lines) {
  std::string names;
  Kinds named = 0;
  for (const auto& line : lines) {
    const Kinds kind = kinds_of({&line, 1});
    if (!is_within(kind, named))
      names.append(named == 0 ? "" : ", ").append(limit::algorithm_name(*line.limiter));
    named |= kind;
  }
  return names;
}

// Returns true if the failure of a call that needs the features `kinds` should be logged. Returns false
// within kPause after any logged failure. Also returns false if `kinds` contains all features of an earlier
// logged failure, because both failures may have the same cause.
bool Faults::note(Kinds kinds, Time now) {
  const bool known =
      std::any_of(logged_.begin(), logged_.end(), [&](Kinds logged) { return is_within(logged, kinds); });
  if (known || now < next_) return false;
  std::erase_if(logged_, [&](Kinds logged) { return is_within(kinds, logged); });
  logged_.push_back(kinds);
  next_ = now + kPause;
  return true;
}

void Faults::note_success(Kinds kinds) noexcept {
  std::erase_if(logged_, [&](Kinds logged) { return is_within(logged, kinds); });
}

}  // namespace weir::redis
