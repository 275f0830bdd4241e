// Metrics of upstreams and their servers.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

namespace {

void write_servers(MetricsPage& page) {
  if (!page.sources().servers) return;
  Family healthy = page.gauge("weir_upstream_healthy", "1 if the server is in service, 0 if it is ejected.");
  Family ejections = page.counter("weir_upstream_ejections_total", "Ejections of a server.");
  Family drained = page.gauge("weir_upstream_drained", "1 if an operator drains the server, else 0.");
  Family weight = page.gauge("weir_upstream_weight", "Weight of the server, as configured or as set since.");
  for (const ServerFigures& figures : page.sources().servers()) {
    const Labels labels{{"server", figures.server}, {"upstream", figures.upstream}};
    healthy.add(labels, figures.healthy ? 1.0 : 0.0);
    ejections.add(labels, figures.ejections);
    drained.add(labels, figures.drained ? 1.0 : 0.0);
    weight.add(labels, std::uint64_t{figures.weight});
  }
  page.put(healthy);
  page.put(ejections);
  page.put(drained);
  page.put(weight);
}

void write_resolves(MetricsPage& page) {
  const auto figures = page.sources().resolves ? page.sources().resolves() : std::vector<ResolveFigures>{};
  if (figures.empty()) return;
  Family resolves = page.counter("weir_resolves_total", "DNS lookups of servers' names, by outcome.");
  for (const ResolveFigures& each : figures) {
    resolves.add({{"outcome", "same"}, {"upstream", each.upstream}}, each.same);
    resolves.add({{"outcome", "changed"}, {"upstream", each.upstream}}, each.changed);
    resolves.add({{"outcome", "failed"}, {"upstream", each.upstream}}, each.failed);
  }
  page.put(resolves);
}

}  // namespace

void write_upstreams_metrics(MetricsPage& page) {
  using observe::UpstreamTallies;
  page.each_upstream(&UpstreamTallies::connects, "weir_upstream_connects_total",
                     "Connections opened to servers.");
  page.each_upstream(&UpstreamTallies::failures, "weir_upstream_failures_total",
                     "Failed connects and broken requests.");
  page.each_upstream(&UpstreamTallies::errors, "weir_upstream_errors_total",
                     "Responses of servers with a 5xx status.");
  page.each_upstream(&UpstreamTallies::reused, "weir_upstream_reused_total",
                     "Requests that reused an idle connection.");
  page.each_upstream(&UpstreamTallies::oversized, "weir_upstream_oversized_heads_total",
                     "Responses whose head exceeded max_head or had too many headers; the client gets 502.");
  page.each_upstream(
      &UpstreamTallies::prompted, "weir_upstream_unanswered_expectations_total",
      "Requests with Expect: 100-continue to which weir sent 100 itself, after expect_continue.");
  page.each_upstream(&UpstreamTallies::retries, "weir_upstream_retries_total", "Retries of requests.");
  page.each_upstream(&UpstreamTallies::denied, "weir_upstream_retries_denied_total",
                     "Requests not retried, because the retry budget was spent.");
  page.each_upstream(&UpstreamTallies::in_flight, "weir_upstream_requests_in_flight",
                     "Requests being forwarded; includes requests that wait for a server, and tunnels.");
  page.each_upstream(
      &UpstreamTallies::seconds, "weir_upstream_seconds",
      "Seconds from a request sent to a server to the head of its response, or until weir gave "
      "up waiting; each attempt counts.");
  page.each_upstream(&UpstreamTallies::waiting, "weir_upstream_queue_depth",
                     "Requests that wait, because all servers are at their max_in_flight or limit.");
  page.each_upstream(&UpstreamTallies::queued, "weir_upstream_queued_total",
                     "Requests that had to wait, because all servers were at their max_in_flight or limit.");
  page.each_upstream(&UpstreamTallies::crowded, "weir_upstream_crowded_total",
                     "Requests refused, because all servers stayed at their max_in_flight or limit.");
  page.each_upstream(&UpstreamTallies::paused, "weir_upstream_paused_total",
                     "Requests that weir answered 429, because of the upstream's Retry-After.");
  write_servers(page);
  write_resolves(page);
}

}  // namespace weir::admin
