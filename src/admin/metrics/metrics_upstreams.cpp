// Metrics of upstreams and their servers.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

namespace {

void tell_servers(MetricsPage& page) {
  if (!page.sources().servers) return;
  Family healthy = page.gauge("weir_upstream_healthy", "Whether a server gets requests.");
  Family ejections = page.counter("weir_upstream_ejections_total", "Times that a server was put out.");
  for (const ServerFigures& figures : page.sources().servers()) {
    const Labels labels{{"server", figures.server}, {"upstream", figures.upstream}};
    healthy.add(labels, figures.healthy ? 1.0 : 0.0);
    ejections.add(labels, figures.ejections);
  }
  page.put(healthy);
  page.put(ejections);
}

void tell_resolves(MetricsPage& page) {
  const auto figures = page.sources().resolves ? page.sources().resolves() : std::vector<ResolveFigures>{};
  if (figures.empty()) return;
  Family resolves = page.counter("weir_resolves_total", "Look-ups of servers' names.");
  for (const ResolveFigures& each : figures) {
    resolves.add({{"outcome", "same"}, {"upstream", each.upstream}}, each.same);
    resolves.add({{"outcome", "changed"}, {"upstream", each.upstream}}, each.changed);
    resolves.add({{"outcome", "failed"}, {"upstream", each.upstream}}, each.failed);
  }
  page.put(resolves);
}

}  // namespace

void tell_upstreams(MetricsPage& page) {
  using observe::UpstreamTallies;
  page.each_upstream(&UpstreamTallies::connects, "weir_upstream_connects_total",
                     "Connections opened to servers.");
  page.each_upstream(&UpstreamTallies::failures, "weir_upstream_failures_total",
                     "Connects that failed and exchanges that broke off.");
  page.each_upstream(&UpstreamTallies::errors, "weir_upstream_errors_total",
                     "Answers of servers with a status of 5xx.");
  page.each_upstream(&UpstreamTallies::reused, "weir_upstream_reused_total",
                     "Requests that found a connection waiting.");
  page.each_upstream(&UpstreamTallies::oversized, "weir_upstream_oversized_heads_total",
                     "Answers whose head was larger than max_head, or had too many fields: 502, and no "
                     "failure of the server.");
  page.each_upstream(&UpstreamTallies::prompted, "weir_upstream_unanswered_expectations_total",
                     "Requests with Expect: 100-continue that servers left waiting for longer than "
                     "expect_continue, so that weir said 100.");
  page.each_upstream(&UpstreamTallies::retries, "weir_upstream_retries_total",
                     "Times that requests were sent again over another connection.");
  page.each_upstream(&UpstreamTallies::denied, "weir_upstream_retries_denied_total",
                     "Requests not sent again because the budget of that was spent.");
  page.each_upstream(&UpstreamTallies::waiting, "weir_upstream_queue_depth",
                     "Requests that wait for a server with room.");
  page.each_upstream(&UpstreamTallies::queued, "weir_upstream_queued_total",
                     "Requests that waited for a server with room.");
  page.each_upstream(&UpstreamTallies::crowded, "weir_upstream_crowded_total",
                     "Requests that found no server with room for them, nor in time.");
  page.each_upstream(&UpstreamTallies::paused, "weir_upstream_paused_total",
                     "Requests answered 429 here because the upstream had asked to be left alone.");
  tell_servers(page);
  tell_resolves(page);
}

}  // namespace weir::admin
