#include "admin/pages/limit_json.hpp"

namespace weir::admin {

namespace json = boost::json;

namespace {

// Returns what the limit would do with the request.
const char* verdict_of(const policy::LimitState& state) noexcept {
  if (state.paces) return "pace";
  if (!state.known) return "unknown";
  if (!state.outcome.allowed) return "refuse";
  return state.outcome.delay.count() > 0 ? "delay" : "admit";
}

}  // namespace

json::value seconds_json(base::Duration duration) {
  if (duration == base::kForever) return nullptr;
  return static_cast<double>(duration.count()) / 1e6;
}

json::array texts_json(const std::vector<std::string>& texts) {
  json::array array;
  for (const auto& text : texts) array.emplace_back(text);
  return array;
}

json::object limit_json(const policy::LimitState& state) {
  json::object out{{"limiter", state.limiter}, {"store", state.store}, {"digest", state.digest}};
  if (!state.choice.empty()) out["chosen_by"] = state.choice;
  if (!state.note.empty()) out["note"] = state.note;
  if (state.counted) out["decides"] = false;
  out["says"] = verdict_of(state);
  const auto& outcome = state.outcome;
  if (state.paces) out["busy_seconds"] = seconds_json(outcome.reset_after);
  if (state.paces || !state.known) return out;
  out["limit"] = state.limit;
  out["remaining"] = state.remaining;
  out["reset_after_seconds"] = seconds_json(outcome.reset_after);
  if (!outcome.allowed) out["retry_after_seconds"] = seconds_json(outcome.retry_after);
  if (outcome.penalty_left.count() > 0) out["penalty_seconds"] = seconds_json(outcome.penalty_left);
  if (outcome.violations != 0) out["violations"] = outcome.violations;
  if (outcome.delay.count() > 0) out["delay_seconds"] = seconds_json(outcome.delay);
  if (state.waiting != 0) out["waiting"] = state.waiting;
  return out;
}

}  // namespace weir::admin
