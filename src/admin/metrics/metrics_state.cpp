// Metrics of the state: the key table, Redis, and units taken in advance.
#include "admin/metrics/metrics_page.hpp"

#include <chrono>

namespace weir::admin {

namespace {

using observe::Counters;

void write_keys(MetricsPage& page) {
  if (!page.sources().key_table) return;
  const auto stats = page.sources().key_table();
  page.put(page.gauge("weir_keys", "Keys in the key table.").add({}, stats.keys));
  page.put(page.gauge("weir_key_slots", "Size of the key table, in keys.").add({}, stats.slots));
  page.put(page.counter("weir_key_overflows_total",
                        "Charges to overflow cells, used while the key table is or was full, by outcome.")
               .add({{"outcome", "charged"}}, stats.overflowed)
               .add({{"outcome", "refused"}}, stats.overflow_refused));
  page.put(page.gauge("weir_log_chunks_used", "Chunks of 64 bytes in use by sliding logs.")
               .add({}, stats.log_chunks_used));
  page.put(page.gauge("weir_log_chunks", "Chunks of 64 bytes reserved for sliding logs.")
               .add({}, stats.log_chunks));
  page.put(page.counter("weir_log_merges_total",
                        "Admissions merged with the previous log entry, because no chunk was left.")
               .add({}, stats.log_merged));
  page.put(page.gauge("weir_penalty_keys", "Keys with violations or penalties in the key table.")
               .add({}, stats.penalty_keys));
  page.put(page.counter("weir_penalty_violations_lost_total",
                        "Violations that started no penalty, because there was no room to count them.")
               .add({}, stats.violations_lost));
}

// Writes how far the system's clock is ahead of weir's clock. weir uses the system's clock for calendars and
// times of day.
void write_clock_offset(MetricsPage& page) {
  if (!page.sources().now) return;
  const auto ahead =
      std::chrono::system_clock::now().time_since_epoch() - page.sources().now().time_since_epoch();
  page.put(
      page.gauge("weir_clock_step_seconds",
                 "Seconds by which the system clock is ahead of the clock that limits use; negative: behind.")
          .add({}, std::chrono::duration<double>(ahead).count()));
}

void write_limits(MetricsPage& page) {
  if (!page.sources().limits) return;
  const auto [had, most] = page.sources().limits();
  page.put(
      page.gauge("weir_limits",
                 "Different limits that this process has had since it started; a rule with adapt has 20.")
          .add({}, had));
  page.put(
      page.gauge("weir_limits_most", "Largest number of different limits; a reload that exceeds it fails.")
          .add({}, most));
}

void write_leases(MetricsPage& page) {
  if (!page.sources().leases) return;
  const auto stats = page.sources().leases();
  page.put(page.counter("weir_lease_units_total", "Units prefetched from Redis, by what happened to them.")
               .add({{"event", "taken"}}, stats.taken)
               .add({{"event", "spent"}}, stats.spent)
               .add({{"event", "put_back"}}, stats.put_back)
               .add({{"event", "returned"}}, stats.returned)
               .add({{"event", "lost"}}, stats.lost));
  page.put(page.gauge("weir_lease_units", "Prefetched units that weir holds.").add({}, stats.held));
  page.put(page.counter("weir_lease_keys_crowded_total",
                        "Requests whose key could not prefetch, because lease_keys was reached.")
               .add({}, stats.crowded));
}

void write_redis(MetricsPage& page) {
  if (!page.sources().redis) return;
  Family up =
      page.gauge("weir_redis_up",
                 "1 if the worker's connection to Redis is up and the secret of client names is known.");
  Family calls =
      page.counter("weir_redis_calls_total", "Charges sent to Redis; simultaneous ones share a call.");
  Family failures = page.counter("weir_redis_failures_total", "Failed calls to Redis, including timeouts.");
  Family timeouts = page.counter("weir_redis_timeouts_total", "Calls to Redis that timed out.");
  Family reconnects = page.counter("weir_redis_reconnects_total", "Reconnections to Redis.");
  Family amendments =
      page.counter("weir_redis_amendments_total",
                   "Refunds and settlements of charges, and renewals of permits, sent to Redis.");
  Family lost = page.counter("weir_redis_amendments_lost_total",
                             "Amendments that may not have been applied, and charges without a reply.");
  Family gaps = page.counter("weir_lease_gaps_lost_total",
                             "Refunded units lost, because a bucket had more gaps than Redis stores.");
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
                               "Refusals decided by the deny cache, without asking Redis.");
  for (std::size_t rule = 0; rule < page.sources().rules.size(); ++rule) {
    if (page.sources().rules[rule].store != "redis") continue;
    const auto index = page.sources().rules[rule].index;
    denied.add({{"rule", page.sources().rules[rule].name}},
               page.sum([&](const Counters& c) { return c.denied_here(index).value(); }));
  }
  page.put(denied);
}

}  // namespace

void write_state_metrics(MetricsPage& page) {
  write_keys(page);
  write_clock_offset(page);
  write_limits(page);
  write_redis(page);
  if (page.sources().redis) write_leases(page);
}

}  // namespace weir::admin
