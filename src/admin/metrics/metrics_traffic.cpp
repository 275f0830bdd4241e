// Metrics of requests, responses and their durations.
#include "admin/metrics/metrics_page.hpp"

#include <optional>

namespace weir::admin {

namespace {

using observe::Counters;

std::string code_label(unsigned status) {
  if (status == Counters::kNoStatus) return "none";
  return status == Counters::kOtherStatus ? "other" : std::to_string(status);
}

// Writes the responses of a route by status. Omits status codes that never occurred, because otherwise each
// route would have 500 lines of zeros.
void count_route(const MetricsPage& page, Family& family, std::optional<std::size_t> route,
                 const std::string& name) {
  Counters::StatusSums sums{};
  for (const auto* counters : page.sources().counters) counters->add_requests(route, sums);
  for (std::size_t slot = 0; slot < sums.size(); ++slot)
    if (sums[slot] != 0)
      family.add({{"code", code_label(Counters::status_at(slot))}, {"route", name}}, sums[slot]);
}

void write_requests(MetricsPage& page) {
  Family requests = page.counter("weir_requests_total",
                                 "Completed requests, by route and status (none: no response was started).");
  for (std::size_t i = 0; i < page.sources().routes.size(); ++i)
    if (!page.sources().routes[i].empty()) count_route(page, requests, i, page.sources().routes[i]);
  count_route(page, requests, std::nullopt, "none");
  page.put(requests);

  Family verdicts = page.counter("weir_verdicts_total", "Completed requests, by verdict.");
  for (std::size_t i = 0; i < observe::kVerdicts; ++i) {
    const auto verdict = static_cast<observe::Verdict>(i);
    verdicts.add({{"verdict", observe::kVerdictNames[i]}},
                 page.sum([&](const Counters& c) { return c.verdicts(verdict).value(); }));
  }
  page.put(verdicts);

  Family errors = page.counter("weir_client_errors_total",
                               "Faulty requests and aborted connections of clients, by kind.");
  for (std::size_t i = 0; i < observe::kClientErrors; ++i) {
    const auto kind = static_cast<observe::ClientError>(i);
    errors.add({{"kind", observe::kClientErrorNames[i]}},
               page.sum([&](const Counters& c) { return c.client_errors(kind).value(); }));
  }
  page.put(errors);
  page.level(&Counters::queue_depth, "weir_queue_depth", "Requests in the queues of leaky_bucket rules.");
  Family refused = page.counter("weir_queue_refused_total", "Requests refused by a queue, by reason.");
  refused.add({{"reason", "crowded"}}, page.sum([](const Counters& c) { return c.queue_crowded.value(); }));
  refused.add({{"reason", "displaced"}},
              page.sum([](const Counters& c) { return c.queue_displaced.value(); }));
  refused.add({{"reason", "levelled"}}, page.sum([](const Counters& c) { return c.queue_levelled.value(); }));
  refused.add({{"reason", "overdue"}}, page.sum([](const Counters& c) { return c.queue_overdue.value(); }));
  page.put(refused);
  page.level(&Counters::body_memory, "weir_body_memory_bytes",
             "Bytes of memory used for bodies that rules read.");
  page.total(
      &Counters::body_memory_refused, "weir_body_memory_refused_total",
      "Bodies not read because max_body_memory was used up: requests answered 503 or 413, or passed by "
      "rules in shadow mode, and responses not inspected.");
  page.total(&Counters::rules_exceeded, "weir_rules_exceeded_total",
             "Requests answered 503 because more than 32 limits apply to them.");
  Family shed = page.counter("weir_shed_total", "Requests shed with 503 because of load, by priority.");
  for (std::size_t i = 0; i < policy::kPriorities; ++i)
    shed.add({{"priority", std::to_string(i)}},
             page.sum([&](const Counters& c) { return c.shed[i].value(); }));
  page.put(shed);
  page.total(&Counters::preflights, "weir_preflights_total",
             "CORS preflights from origins in [cors], for which no rule was asked.");
  Family dropped = page.counter("weir_access_log_dropped_total",
                                "Access log lines dropped, because writing failed or was too slow.");
  dropped.add({}, page.sum([](const Counters& c) { return c.access_log_dropped.value(); }));
  if (page.sources().log_lines_lost) dropped.add({}, page.sources().log_lines_lost());
  page.put(dropped);
}

void write_spans(MetricsPage& page) {
  if (!page.sources().spans) return;
  const auto figures = page.sources().spans();
  Family exported =
      page.counter("weir_spans_exported_total", "Spans that the OpenTelemetry collector accepted.");
  exported.add({}, figures.exported);
  page.put(exported);
  Family dropped = page.counter("weir_spans_dropped_total",
                                "Spans dropped because max_queue was reached, or because the collector "
                                "rejected them, by reason.");
  dropped.add({{"reason", "full"}}, figures.dropped_full);
  dropped.add({{"reason", "rejected"}}, figures.dropped_rejected);
  page.put(dropped);
  Family failed = page.counter("weir_span_posts_failed_total",
                               "Posts of spans without an answer, and answers that ask for a retry.");
  failed.add({}, figures.failed_posts);
  page.put(failed);
}

void write_token_keys(MetricsPage& page) {
  const auto figures =
      page.sources().token_keys ? page.sources().token_keys() : std::vector<TokenKeyFigures>{};
  if (figures.empty()) return;
  Family fetches = page.counter("weir_token_key_fetches_total", "Fetches of keys of tokens, by outcome.");
  Family keys = page.gauge("weir_token_keys", "Keys of tokens that weir has fetched and uses.");
  Family age = page.gauge("weir_token_keys_age_seconds",
                          "Seconds since keys of tokens were last fetched; absent before the first time.");
  Family waiting = page.gauge("weir_token_key_waiting", "Requests that wait for the key of their token.");
  for (const auto& each : figures) {
    fetches.add({{"outcome", "failed"}, {"url", each.url}}, each.failed);
    fetches.add({{"outcome", "ok"}, {"url", each.url}}, each.fetched);
    keys.add({{"url", each.url}}, each.keys);
    waiting.add({{"url", each.url}}, each.waiting);
    if (each.age) age.add({{"url", each.url}}, std::chrono::duration<double>(*each.age).count());
  }
  page.put(fetches);
  page.put(keys);
  page.put(age);
  page.put(waiting);
}

void write_tokens(MetricsPage& page) {
  Family tokens =
      page.counter("weir_token_faults_total",
                   "Invalid bearer tokens, and requests refused because they had none, by reason.");
  for (std::size_t i = 0; i < policy::kTokenFaults; ++i) {
    const auto fault = static_cast<policy::TokenFault>(i);
    tokens.add({{"reason", std::string(policy::name_of(fault))}},
               page.sum([&](const Counters& c) { return c.token_faults(fault).value(); }));
  }
  page.put(tokens);
  Family waits = page.counter("weir_token_key_waits_total",
                              "Requests that waited for the key of their token, by how the wait ended.");
  for (std::size_t i = 0; i < observe::kTokenKeyWaited; ++i) {
    const auto outcome = static_cast<observe::TokenKeyWaited>(i);
    waits.add({{"outcome", observe::kTokenKeyWaitedNames[i]}},
              page.sum([&](const Counters& c) { return c.token_key_waits(outcome).value(); }));
  }
  page.put(waits);
  write_token_keys(page);
}

// Omits histograms without a request, because each has 22 lines.
void write_routes(MetricsPage& page) {
  Family in_flight = page.gauge("weir_route_requests_in_flight",
                                "Requests under way, by route; includes waiting requests and tunnels.");
  HistogramFamily seconds(
      "weir_request_seconds",
      "Seconds from the end of a request's head to the end of its response, by route; only "
      "for requests sent to a server.");
  const auto& routes = page.sources().routes;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].empty()) continue;
    in_flight.add({{"route", routes[i]}},
                  page.sum([&](const Counters& c) { return c.route(i).in_flight.value(); }));
    const auto totals = page.sum_of_histograms(
        [&](const Counters& c) -> const observe::Histogram& { return c.route(i).seconds; });
    if (totals.count != 0) seconds.add({{"route", routes[i]}}, totals);
  }
  page.put(in_flight);
  page.put(seconds);
}

void write_durations(MetricsPage& page) {
  write_routes(page);
  page.durations(&Counters::local_reply_seconds, "weir_local_reply_seconds",
                 "Seconds from the end of a request's head to its end, for requests sent to no server: "
                 "refusals, errors, and responses of weir's own.");
  page.durations(&Counters::decision_seconds, "weir_decision_seconds",
                 "Seconds to decide a request with Redis, including the round trip; decisions without Redis "
                 "are not measured.");
}

void write_http2(MetricsPage& page) {
  Family connections = page.gauge("weir_connections", "Open client connections, by HTTP version.");
  const auto http2 = page.sum([](const Counters& c) { return c.http2_connections_open.value(); });
  connections.add({{"protocol", "HTTP/1"}},
                  page.sum([](const Counters& c) { return c.connections_open.value(); }) - http2);
  connections.add({{"protocol", "HTTP/2"}}, http2);
  page.put(connections);
  page.level(&Counters::http2_streams_open, "weir_http2_streams", "Open streams of HTTP/2 clients.");
  Family resets =
      page.counter("weir_http2_resets_total", "Streams of HTTP/2 clients that were reset, by the cause.");
  for (std::size_t i = 0; i < observe::kResetBy; ++i) {
    const auto by = static_cast<observe::ResetBy>(i);
    resets.add({{"by", observe::kResetByNames[i]}},
               page.sum([&](const Counters& c) { return c.http2_resets(by).value(); }));
  }
  page.put(resets);
  Family goaways =
      page.counter("weir_http2_goaways_total", "HTTP/2 connections that weir ended, by the reason.");
  for (std::size_t i = 0; i < observe::kGoaways; ++i) {
    const auto reason = static_cast<observe::Goaway>(i);
    goaways.add({{"reason", observe::kGoawayNames[i]}},
                page.sum([&](const Counters& c) { return c.http2_goaways(reason).value(); }));
  }
  page.put(goaways);
}

void write_connections(MetricsPage& page) {
  page.total(&Counters::connections_accepted, "weir_connections_accepted_total",
             "Connections accepted from clients.");
  page.level(&Counters::connections_open, "weir_connections_open", "Open client connections.");
  write_http2(page);
  Family handshakes = page.counter("weir_tls_handshakes_total", "TLS handshakes with clients, by outcome.");
  for (std::size_t i = 0; i < observe::kHandshakes; ++i) {
    const auto outcome = static_cast<observe::Handshake>(i);
    handshakes.add({{"outcome", observe::kHandshakeNames[i]}},
                   page.sum([&](const Counters& c) { return c.handshakes(outcome).value(); }));
  }
  page.put(handshakes);
  page.level(&Counters::tunnels_open, "weir_tunnels_open",
             "Open connections that were upgraded to another protocol, such as WebSocket.");
  Family tunnels =
      page.counter("weir_tunnels_total", "Upgraded connections that have ended, by how they ended.");
  for (std::size_t i = 0; i < observe::kTunnelEnds; ++i) {
    const auto end = static_cast<observe::TunnelEnd>(i);
    tunnels.add({{"end", observe::kTunnelEndNames[i]}},
                page.sum([&](const Counters& c) { return c.tunnels(end).value(); }));
  }
  page.put(tunnels);
  page.total(&Counters::connections_crowded, "weir_connections_crowded_total",
             "Connections closed on arrival, because their address had max_connections_per_ip.");
  Family evicted = page.counter("weir_connections_evicted_total",
                                "Connections closed to make room for new ones, by their state.");
  for (std::size_t i = 0; i < observe::kEvicted; ++i) {
    const auto was = static_cast<observe::Evicted>(i);
    evicted.add({{"was", observe::kEvictedNames[i]}},
                page.sum([&](const Counters& c) { return c.evicted(was).value(); }));
  }
  page.put(evicted);
  Family abandoned =
      page.counter("weir_abandoned_answers_total",
                   "Responses read after the client disconnected, because a rule needed them.");
  for (const bool whole : {false, true})
    abandoned.add({{"read", whole ? "whole" : "part"}},
                  page.sum([&](const Counters& c) { return c.abandoned(whole).value(); }));
  page.put(abandoned);
  page.total(&Counters::accept_failures, "weir_accept_failures_total",
             "Failed accepts, because file descriptors or memory had run out.");
  page.total(&Counters::bytes_in, "weir_received_bytes_total",
             "Bytes received from clients, without TLS overhead.");
  page.total(&Counters::bytes_out, "weir_sent_bytes_total", "Bytes sent to clients, without TLS overhead.");
}

}  // namespace

void write_traffic_metrics(MetricsPage& page) {
  write_requests(page);
  write_spans(page);
  write_tokens(page);
  write_durations(page);
  write_connections(page);
}

}  // namespace weir::admin
