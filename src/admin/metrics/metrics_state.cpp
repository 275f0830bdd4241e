// Metrics of the state: the key table, Redis, and units taken in advance.
#include "admin/metrics/metrics_page.hpp"

#include <chrono>

namespace weir::admin {

namespace {

using observe::Counters;

void tell_keys(MetricsPage& page) {
  if (!page.sources().key_table) return;
  const auto stats = page.sources().key_table();
  page.put(page.gauge("weir_keys", "Keys that the table remembers.").add({}, stats.keys));
  page.put(page.gauge("weir_key_slots", "Keys that the table has room for.").add({}, stats.slots));
  page.put(page.counter("weir_key_overflows_total",
                        "What overflow cells said, because the table was full or had been.")
               .add({{"outcome", "charged"}}, stats.overflowed)
               .add({{"outcome", "refused"}}, stats.overflow_refused));
  page.put(page.gauge("weir_log_chunks_used", "Chunks of 64 bytes that logs of single admissions hold.")
               .add({}, stats.log_chunks_used));
  page.put(page.gauge("weir_log_chunks", "Chunks that there are.").add({}, stats.log_chunks));
  page.put(page.counter("weir_log_merges_total",
                        "Admissions entered with the one before, because no chunk was left.")
               .add({}, stats.log_merged));
}

// Reports how far the system's clock differs from weir's clock, by which calendars and times of day run.
void tell_clock(MetricsPage& page) {
  if (!page.sources().now) return;
  const auto ahead =
      std::chrono::system_clock::now().time_since_epoch() - page.sources().now().time_since_epoch();
  page.put(page.gauge("weir_clock_step_seconds",
                      "How far the system's clock has been set, or has run, ahead of the one that weir has "
                      "gone by since it started; below zero: behind.")
               .add({}, std::chrono::duration<double>(ahead).count()));
}

void tell_limits(MetricsPage& page) {
  if (!page.sources().limits) return;
  const auto [had, most] = page.sources().limits();
  page.put(
      page.gauge("weir_limits", "Different limits that this process has had, which it keeps.").add({}, had));
  page.put(page.gauge("weir_limits_most", "As many as it may have had; a reload beyond is refused.")
               .add({}, most));
}

void tell_leases(MetricsPage& page) {
  if (!page.sources().leases) return;
  const auto stats = page.sources().leases();
  page.put(page.counter("weir_lease_units_total",
                        "Units of keys in Redis that were taken in advance, and what became of them.")
               .add({{"event", "taken"}}, stats.taken)
               .add({{"event", "spent"}}, stats.spent)
               .add({{"event", "put_back"}}, stats.put_back)
               .add({{"event", "returned"}}, stats.returned)
               .add({{"event", "lost"}}, stats.lost));
  page.put(page.gauge("weir_lease_units", "Units that are held at the moment.").add({}, stats.held));
  page.put(page.counter("weir_lease_keys_crowded_total",
                        "Times that a key found no place among those that may be leased.")
               .add({}, stats.crowded));
}

void tell_redis(MetricsPage& page) {
  if (!page.sources().redis) return;
  Family up = page.gauge("weir_redis_up",
                         "Whether each worker asks Redis: it is connected, and the secret is known.");
  Family calls = page.counter("weir_redis_calls_total",
                              "Bills that Redis was asked for; those of a moment share a call.");
  Family failures =
      page.counter("weir_redis_failures_total", "Calls without an answer of use, time-outs included.");
  Family timeouts = page.counter("weir_redis_timeouts_total", "Calls that outlasted their deadline.");
  Family reconnects = page.counter("weir_redis_reconnects_total", "Connections made anew.");
  Family amendments =
      page.counter("weir_redis_amendments_total", "Charges given back or settled, and places renewed.");
  Family lost =
      page.counter("weir_redis_amendments_lost_total",
                   "Of those, not carried out as far as is known; and charges whose answer was never heard.");
  Family gaps = page.counter(
      "weir_lease_gaps_lost_total",
      "Of what went back to buckets between others' places: what was in more gaps than are kept.");
  std::size_t worker = 0;
  for (const RedisFigures& figures : page.sources().redis()) {
    up.add({{"worker", std::to_string(worker++)}}, figures.up ? 1.0 : 0.0);
    calls.add({}, figures.calls);
    failures.add({}, figures.failures);
    timeouts.add({}, figures.timeouts);
    reconnects.add({}, figures.reconnects);
    amendments.add({}, figures.amendments);
    lost.add({}, figures.amendments_lost);
    gaps.add({}, figures.gaps_lost);
  }
  for (const Family* family : {&up, &calls, &failures, &timeouts, &reconnects, &amendments, &lost, &gaps})
    page.put(*family);
  Family denied = page.counter("weir_redis_denied_here_total",
                               "Refusals that Redis was not asked for, because it is known to refuse.");
  for (std::size_t rule = 0; rule < page.sources().rules.size(); ++rule) {
    if (page.sources().rules[rule].store != "redis") continue;
    const auto index = page.sources().rules[rule].label;
    denied.add({{"rule", page.sources().rules[rule].name}},
               page.sum([&](const Counters& c) { return c.denied_here(index).value(); }));
  }
  page.put(denied);
}

}  // namespace

void tell_state(MetricsPage& page) {
  tell_keys(page);
  tell_clock(page);
  tell_limits(page);
  tell_redis(page);
  if (page.sources().redis) tell_leases(page);
}

}  // namespace weir::admin
