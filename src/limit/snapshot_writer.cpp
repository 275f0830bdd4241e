#include "limit/snapshot_words.hpp"

namespace weir::limit {

namespace {

std::uint64_t micros_of(base::TimePoint at) noexcept {
  return static_cast<std::uint64_t>(at.time_since_epoch().count());
}

void put_rule(WordWriter& out, const SavedRule& rule) {
  out.put(rule.name);
  out.put(rule.variants.size());
  for (const auto& [name, numbers] : rule.variants) {
    out.put(name);
    out.put(numbers);
  }
}

void put_shared(WordWriter& out, const SharedCell& shared) {
  out.put(shared.rule);
  out.put(fingerprint(shared.units));
  out.put(shared.cell);
}

void put_key(WordWriter& out, const SavedKey& saved) {
  const bool is_log = !saved.log.empty();
  out.put((micros_of(saved.drained_at) << kDrainedAt) | (is_log ? kIsLog : 0) | saved.rule);
  out.put(saved.key);
  if (!is_log) return out.put(saved.cell);
  out.put(saved.log.size());
  for (const auto& [mark, cost] : saved.log) {
    out.put(mark);
    out.put(cost);
  }
}

}  // namespace

std::uint64_t write_snapshot(const KeyTable& table, const Snapshot& snapshot,
                             std::span<const SavedRule> rules, const ByteSink& sink) {
  WordWriter out(sink);
  out.put(kSnapshotMagic);
  out.put(kSnapshotVersion);
  out.put(micros_of(snapshot.saved_at));
  out.put(snapshot.names.k0);
  out.put(snapshot.names.k1);
  out.put(rules.size());
  for (const auto& rule : rules) put_rule(out, rule);
  const auto shared = table.shared_cells(snapshot.saved_at);
  out.put(shared.size());
  for (const auto& cell : shared) put_shared(out, cell);
  std::uint64_t keys = 0;
  table.visit(snapshot.saved_at, rules, [&](const SavedKey& saved) {
    put_key(out, saved);
    ++keys;
  });
  out.put(kSnapshotEnd);
  out.put(keys);
  out.finish();
  return keys;
}

}  // namespace weir::limit
