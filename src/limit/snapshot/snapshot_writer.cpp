#include "limit/snapshot/snapshot_limiter.hpp"

#include <algorithm>
#include <unordered_map>

namespace weir::limit {

namespace {

std::uint64_t micros_of(base::TimePoint at) noexcept {
  return static_cast<std::uint64_t>(at.time_since_epoch().count());
}

void put_rule(WordWriter& out, const SavedRule& rule) {
  out.put(rule.name);
  out.put(rule.limiters.size());
  // The numbers, from 1 on, by which the snapshot refers to the limiters of the rule. The number 0 means no
  // limiter.
  std::unordered_map<const Limiter*, std::uint64_t> places;
  std::uint64_t place = 0;
  for (const auto* limiter : rule.limiters) {
    put_limiter(out, *limiter);
    places.emplace(limiter, ++place);
  }
  out.put(rule.variants.size());
  for (const auto& variant : rule.variants) {
    out.put(variant.name);
    out.put(variant.numbers);
    out.put(variant.limiter_id);
    out.put(places[variant.limiter]);
  }
}

// Returns the variant of the rule (the rule itself, a tier or an override) to which the overflow cell
// belongs. The snapshot stores the name of this variant, so that a restore finds the cell's limiter. Returns
// null if the rule no longer has the variant.
const SavedRule::Variant* variant_of(const SharedCell& shared, std::span<const SavedRule> rules) {
  if (shared.rule >= rules.size()) return nullptr;
  const auto& variants = rules[shared.rule].variants;
  const auto found = std::find_if(variants.begin(), variants.end(), [&](const SavedRule::Variant& variant) {
    return variant.limiter_id == shared.limiter_id;
  });
  return found != variants.end() ? &*found : nullptr;
}

void put_shared(WordWriter& out, const SharedCell& shared, const SavedRule::Variant& variant) {
  out.put(shared.rule);
  out.put(variant.name);
  out.put(fingerprint(shared.units));
  out.put(shared.cell);
}

void put_key(WordWriter& out, const SavedKey& saved, const KeyWord& word) {
  const bool is_log = !saved.log.empty();
  out.put(word.word(micros_of(saved.drained_at), is_log, saved.rule));
  out.put(saved.key);
  if (!is_log) return out.put(saved.cell);
  out.put(saved.log.size());
  for (const auto& [mark, cost] : saved.log) {
    out.put(mark);
    out.put(cost);
  }
}

}  // namespace

namespace {

// Returns the lowest format version that can hold the state, so that older versions of weir can read the
// snapshot if possible.
std::uint64_t version_for(std::size_t rules, bool penalties) noexcept {
  if (rules > kFewRules) return kSnapshotVersion;
  return penalties ? kFewRulesVersion : kNoPenaltyVersion;
}

void put_penalties(WordWriter& out, std::span<const SavedPenalty> penalties) {
  out.put(penalties.size());
  for (const auto& [key, forgotten_at, state] : penalties) {
    out.put(key);
    out.put(micros_of(forgotten_at));
    out.put(micros_of(state.end));
    for (const auto* times : {&state.violations, &state.begins}) {
      out.put(times->size());
      for (const auto at : *times) out.put(micros_of(at));
    }
  }
}

}  // namespace

std::uint64_t write_snapshot(const KeyTable& table, const Snapshot& snapshot,
                             std::span<const SavedRule> rules, const ByteSink& sink) {
  WordWriter out(sink);
  const auto penalties = table.penalties(snapshot.saved_at);
  out.put(kSnapshotMagic);
  const auto version = version_for(rules.size(), !penalties.empty());
  out.put(version);
  out.put(micros_of(snapshot.saved_at));
  out.put(micros_of(snapshot.machine_at.value_or(snapshot.saved_at)));
  out.put(snapshot.names.k0);
  out.put(snapshot.names.k1);
  out.put(rules.size());
  for (const auto& rule : rules) put_rule(out, rule);
  auto shared = table.shared_cells(snapshot.saved_at);
  std::erase_if(shared, [&](const SharedCell& cell) { return variant_of(cell, rules) == nullptr; });
  out.put(shared.size());
  for (const auto& cell : shared) put_shared(out, cell, *variant_of(cell, rules));
  if (version > kNoPenaltyVersion) put_penalties(out, penalties);
  std::uint64_t keys = 0;
  table.visit(snapshot.saved_at, rules, [&](const SavedKey& saved) {
    put_key(out, saved, key_word_of(version));
    ++keys;
  });
  out.put(kSnapshotEnd);
  out.put(keys);
  out.finish();
  return keys;
}

}  // namespace weir::limit
