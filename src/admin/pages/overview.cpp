// The data that the dashboard requests every few seconds. Counters are totals since weir started, and the
// dashboard computes rates from them. Times are in milliseconds since the Unix epoch. docs/dashboard.md
// describes each member.
#include "admin/metrics/totals.hpp"
#include "admin/pages/answer.hpp"
#include "admin/pages/rules.hpp"
#include "admin/pages/server_json.hpp"

#include "weir/admin/recorder.hpp"
#include "weir/observe/json_value.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;
using observe::Counters;

std::int64_t millis(base::TimePoint at) {
  return std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

json::value millis(const std::optional<base::TimePoint>& at) {
  return at ? json::value(millis(*at)) : json::value(nullptr);
}

std::uint64_t total(const Sources& sources, observe::Tally Counters::*tally) {
  return total(sources, [&](const Counters& counters) { return (counters.*tally).value(); });
}

std::int64_t level(const Sources& sources, observe::Gauge Counters::*gauge) {
  std::int64_t sum = 0;
  for (const auto* counters : sources.counters) sum += (counters->*gauge).value();
  return sum;
}

json::object traffic(const Sources& sources) {
  json::object out;
  for (std::size_t i = 0; i < observe::kVerdicts; ++i)
    out[observe::kVerdictNames[i]] = total(sources, static_cast<observe::Verdict>(i));
  out["shed"] = total(sources, [](const Counters& counters) {
    std::uint64_t sum = 0;
    for (const auto& tally : counters.shed) sum += tally.value();
    return sum;
  });
  return out;
}

// Returns the number of responses for each first digit of the status, and the number of requests without a
// response.
json::object answers(const Sources& sources) {
  constexpr std::array<const char*, 6> kNames{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
  std::array<std::uint64_t, kNames.size()> sums{};
  Counters::StatusSums by_status{};
  for (const auto* counters : sources.counters) {
    for (std::size_t route = 0; route < sources.routes.size(); ++route)
      counters->add_requests(route, by_status);
    counters->add_requests(std::nullopt, by_status);
  }
  for (std::size_t slot = 0; slot < by_status.size(); ++slot)
    if (const auto digit = Counters::status_at(slot) / 100; digit < sums.size())
      sums[digit] += by_status[slot];
  json::object out;
  for (std::size_t i = 0; i < kNames.size(); ++i) out[kNames[i]] = sums[i];
  return out;
}

json::object latency(const Sources& sources) {
  observe::Histogram::Totals totals;
  for (const auto* counters : sources.counters)
    for (std::size_t route = 0; route < sources.routes.size(); ++route)
      totals += counters->route(route).seconds.read();
  return {{"bounds_us", json::array(observe::Histogram::kBounds.begin(), observe::Histogram::kBounds.end())},
          {"counts", json::array(totals.counts.begin(), totals.counts.end())}};
}

// Returns the rule's index in the recorder, which may differ from its index in the configuration after a
// reload. Returns nullopt if the recorder does not have the rule.
std::optional<std::size_t> place_of(const std::string& rule, const Recorder* recorder) {
  if (recorder == nullptr) return std::nullopt;
  const auto found = std::find(recorder->rules().begin(), recorder->rules().end(), rule);
  if (found == recorder->rules().end()) return std::nullopt;
  return static_cast<std::size_t>(found - recorder->rules().begin());
}

json::array rules(const Sources& sources) {
  json::array out;
  for (std::size_t i = 0; i < sources.rules.size(); ++i) {
    json::object rule = rule_json(sources, i);
    if (const auto place = place_of(sources.rules[i].name, sources.recorder)) {
      const auto& refusals = sources.recorder->refusals(*place);
      rule["refusing_since"] = millis(refusals.since());
      rule["last_refused"] = millis(refusals.last());
    }
    out.push_back(std::move(rule));
  }
  return out;
}

json::array upstreams(const Sources& sources) {
  const auto figures = sources.servers ? sources.servers() : std::vector<ServerFigures>{};
  json::array out;
  for (std::size_t i = 0; i < sources.upstreams.size(); ++i) {
    if (sources.upstreams[i].empty()) continue;  // no upstream has this index
    const auto sum = [&](observe::Tally observe::UpstreamTallies::*tally) {
      return total(sources, [&](const Counters& counters) { return (counters.upstream(i).*tally).value(); });
    };
    json::array servers;
    for (const ServerFigures& each : figures)
      if (each.upstream == sources.upstreams[i]) servers.push_back(server_json(each));
    out.push_back({{"name", sources.upstreams[i]},
                   {"servers", std::move(servers)},
                   {"failures", sum(&observe::UpstreamTallies::failures)},
                   {"errors", sum(&observe::UpstreamTallies::errors)},
                   {"retries", sum(&observe::UpstreamTallies::retries)},
                   {"crowded", sum(&observe::UpstreamTallies::crowded)}});
  }
  return out;
}

// Returns one object with the sums over the Redis connections of all workers.
json::object redis(const std::vector<RedisFigures>& workers) {
  RedisFigures sum;
  std::uint64_t up = 0;
  for (const RedisFigures& each : workers) {
    up += each.up ? 1 : 0;
    sum.calls += each.calls;
    sum.failures += each.failures;
    sum.timeouts += each.timeouts;
    sum.reconnects += each.reconnects;
  }
  return {{"connections", workers.size()},
          {"up", up},
          {"calls", sum.calls},
          {"failures", sum.failures},
          {"timeouts", sum.timeouts},
          {"reconnects", sum.reconnects}};
}

json::object http2(const Sources& sources) {
  return {{"connections", level(sources, &Counters::http2_connections_open)},
          {"streams", level(sources, &Counters::http2_streams_open)}};
}

json::object keys(const limit::KeyTable::Stats& stats) {
  return {{"used", stats.keys}, {"slots", stats.slots}, {"overflowed", stats.overflowed}};
}

json::array certificates(const TlsFigures& figures) {
  json::array out;
  for (const CertificateFigures& each : figures.certificates)
    out.push_back({{"listener", each.listener},
                   {"file", each.file},
                   {"not_after", millis(base::TimePoint(each.not_after))}});
  for (const OwnCertificateFigures& each : figures.own)
    out.push_back({{"shown_to", each.shown_to},
                   {"file", each.file},
                   {"not_after", millis(base::TimePoint(each.not_after))}});
  return out;
}

json::array alerts(const std::vector<AlertFigures>& all) {
  json::array out;
  for (const AlertFigures& each : all) {
    json::object alert{{"name", each.name}, {"firing", each.firing}, {"since", millis(each.since)},
                       {"seen", each.seen}, {"above", each.above},   {"failed", each.failed}};
    if (each.per_client) alert["clients"] = each.clients;
    out.push_back(std::move(alert));
  }
  return out;
}

json::object process(const ProcessFigures& figures) {
  return {{"resident_bytes", figures.resident_bytes},
          {"open_descriptors", figures.open_descriptors},
          {"most_descriptors", figures.most_descriptors},
          {"cpu_seconds", figures.cpu_seconds}};
}

json::array increases(const observe::History& history, std::size_t series) {
  json::array out;
  out.reserve(history.steps());
  for (std::size_t step = 0; step < history.steps(); ++step) out.push_back(history.increase(series, step));
  return out;
}

}  // namespace

std::string overview_json(const Sources& sources) {
  const Readiness now = sources.readiness ? sources.readiness() : Readiness{true, {}};
  json::object out{{"version", sources.version},
                   {"started", millis(sources.started)},
                   {"now", sources.now ? millis(sources.now()) : 0},
                   {"ready", now.ready},
                   {"detail", now.detail},
                   {"cause", now.cause},
                   {"workers", sources.counters.size()},
                   {"traffic", traffic(sources)},
                   {"answers", answers(sources)},
                   {"latency", latency(sources)},
                   {"connections", level(sources, &Counters::connections_open)},
                   {"http2", http2(sources)},
                   {"queue_depth", level(sources, &Counters::queue_depth)},
                   {"store_failures", total(sources, &Counters::store_failures)},
                   {"top", sources.top != nullptr},
                   {"rules", rules(sources)},
                   {"upstreams", upstreams(sources)}};
  if (sources.key_table) out["keys"] = keys(sources.key_table());
  if (sources.redis) out["redis"] = redis(sources.redis());
  if (sources.certificates) out["certificates"] = certificates(sources.certificates());
  if (sources.alerts) out["alerts"] = alerts(sources.alerts());
  if (const auto figures = sources.process ? sources.process() : std::nullopt)
    out["process"] = process(*figures);
  return observe::json_text(out);
}

std::string history_json(const Sources& sources) {
  json::object out{{"step_ms", Recorder::kStep.count() / 1000}, {"end", 0}, {"rules", json::array()}};
  for (const char* verdict : observe::kVerdictNames) out[verdict] = json::array();
  if (sources.recorder == nullptr) return observe::json_text(out);
  const Recorder& recorder = *sources.recorder;
  const auto& history = recorder.history();
  out["end"] = millis(recorder.latest());
  for (std::size_t i = 0; i < observe::kVerdicts; ++i) out[observe::kVerdictNames[i]] = increases(history, i);
  json::array rules;
  for (std::size_t i = 0; i < recorder.rules().size(); ++i)
    rules.push_back({{"name", recorder.rules()[i]},
                     {"admitted", increases(history, observe::kVerdicts + 2 * i)},
                     {"refused", increases(history, observe::kVerdicts + 2 * i + 1)}});
  out["rules"] = std::move(rules);
  return observe::json_text(out);
}

}  // namespace weir::admin
