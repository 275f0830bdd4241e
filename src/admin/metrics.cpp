// The metrics page, by prometheus-cpp's serialiser alone: its registry counts with locks and keeps what it
// has seen, while weir's counters are read here when somebody asks. Labels come from the configuration, never
// from a client.
#include "admin/answer.hpp"

#include <map>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace weir::admin {

namespace {

using observe::Counters;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kMicrosPerSecond = 1e6;

// One family. Values given for equal labels are added up: two routes may bear one name, and a page that says
// a series twice is refused as a whole.
class Family {
 public:
  Family(MetricType type, std::string name, std::string help)
      : type_(type), name_(std::move(name)), help_(std::move(help)) {}

  Family& add(Labels labels, double value) {
    values_[std::move(labels)] += value;
    return *this;
  }
  Family& add(Labels labels, std::uint64_t value) {
    return add(std::move(labels), static_cast<double>(value));
  }

  [[nodiscard]] MetricFamily build() const {
    MetricFamily family{name_, help_, type_, {}};
    for (const auto& [labels, value] : values_) {
      ClientMetric& metric = family.metric.emplace_back();
      metric.label = labels;
      (type_ == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    }
    return family;
  }

 private:
  MetricType type_;
  std::string name_;
  std::string help_;
  std::map<Labels, double> values_;
};

class Page {
 public:
  explicit Page(const Sources& sources) : sources_(sources) {}

  void tell_requests();
  void tell_decisions();
  void tell_settlements();
  void tell_messages();
  void tell_durations();
  void tell_connections();
  void tell_upstreams();
  void tell_servers();
  void tell_load();
  void tell_keys();
  void tell_redis();
  void tell_leases();
  void tell_tls();
  void tell_process();

  [[nodiscard]] std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  Family counter(std::string name, std::string help) {
    return {MetricType::Counter, std::move(name), std::move(help)};
  }
  Family gauge(std::string name, std::string help) {
    return {MetricType::Gauge, std::move(name), std::move(help)};
  }
  void put(const Family& family) { families_.push_back(family.build()); }

  template <class Read>
  [[nodiscard]] double sum(Read read) const {
    double total = 0;
    for (const Counters* counters : sources_.counters) total += static_cast<double>(read(*counters));
    return total;
  }
  void total(observe::Tally Counters::*tally, std::string name, std::string help) {
    put(counter(std::move(name), std::move(help)).add({}, sum([&](const Counters& c) {
                                                        return (c.*tally).value();
                                                      })));
  }
  void level(observe::Gauge Counters::*level, std::string name, std::string help) {
    put(gauge(std::move(name), std::move(help)).add({}, sum([&](const Counters& c) {
                                                      return (c.*level).value();
                                                    })));
  }
  void each_upstream(observe::Tally observe::UpstreamTallies::*tally, std::string name, std::string help);
  void durations(const observe::Histogram Counters::*histogram, std::string name, std::string help);
  void count_route(Family& family, std::optional<std::size_t> route, const std::string& name) const;

  const Sources& sources_;
  std::vector<MetricFamily> families_;
};

std::string code_label(unsigned status) {
  if (status == Counters::kNoStatus) return "none";
  return status == Counters::kOtherStatus ? "other" : std::to_string(status);
}

// Codes that were never answered are left out: 500 lines of nothing for each route would drown the rest.
void Page::count_route(Family& family, std::optional<std::size_t> route, const std::string& name) const {
  const auto count = [&](unsigned status) {
    const double seen = sum([&](const Counters& c) { return c.requests(route, status).value(); });
    if (seen > 0) family.add({{"code", code_label(status)}, {"route", name}}, seen);
  };
  count(Counters::kNoStatus);
  for (unsigned status = Counters::kFirstStatus; status <= Counters::kOtherStatus; ++status) count(status);
}

void Page::tell_requests() {
  Family requests =
      counter("weir_requests_total", "Requests that ended, by route and status (none: no answer was begun).");
  for (std::size_t i = 0; i < sources_.routes.size(); ++i) count_route(requests, i, sources_.routes[i]);
  count_route(requests, std::nullopt, "none");
  put(requests);

  Family errors = counter("weir_client_errors_total", "What clients did wrong, or how they went away.");
  for (std::size_t i = 0; i < observe::kClientErrors; ++i) {
    const auto kind = static_cast<observe::ClientError>(i);
    errors.add({{"kind", observe::kClientErrorNames[i]}},
               sum([&](const Counters& c) { return c.client_errors(kind).value(); }));
  }
  put(errors);
  level(&Counters::queue_depth, "weir_queue_depth", "Requests that wait for their departure.");
  Family refused = counter("weir_queue_refused_total",
                           "Requests that the queue did not let in, let go too late, or sent away.");
  refused.add({{"reason", "crowded"}}, sum([](const Counters& c) { return c.queue_crowded.value(); }));
  refused.add({{"reason", "displaced"}}, sum([](const Counters& c) { return c.queue_displaced.value(); }));
  refused.add({{"reason", "levelled"}}, sum([](const Counters& c) { return c.queue_levelled.value(); }));
  refused.add({{"reason", "overdue"}}, sum([](const Counters& c) { return c.queue_overdue.value(); }));
  put(refused);
  Family shed = counter("weir_shed_total", "Requests answered 503 because of load, by priority.");
  for (std::size_t i = 0; i < policy::kPriorities; ++i)
    shed.add({{"priority", std::to_string(i)}}, sum([&](const Counters& c) { return c.shed[i].value(); }));
  put(shed);
  total(&Counters::access_log_dropped, "weir_access_log_dropped_total",
        "Access log lines dropped because writing did not keep up.");
}

void Page::tell_decisions() {
  Family decisions = counter("weir_decisions_total", "What each rule said to the requests that met it.");
  for (std::size_t rule = 0; rule < sources_.rules.size(); ++rule)
    for (std::size_t i = 0; i < observe::kRuleOutcomes; ++i) {
      const auto index = static_cast<limit::RuleIndex>(rule);
      const auto outcome = static_cast<observe::RuleOutcome>(i);
      decisions.add({{"outcome", observe::kRuleOutcomeNames[i]}, {"rule", sources_.rules[rule].name}},
                    sum([&](const Counters& c) { return c.decisions(index, outcome).value(); }));
    }
  put(decisions);
  tell_settlements();
  tell_messages();
  total(&Counters::store_failures, "weir_store_failures_total",
        "Decisions that Redis did not answer in time.");
}

// Of rules whose charges wait for answers: others would only show nothing.
void Page::tell_settlements() {
  Family settled = counter("weir_settlements_total", "What became of charges that their answers settle.");
  for (std::size_t rule = 0; rule < sources_.rules.size(); ++rule) {
    if (!sources_.rules[rule].settles) continue;
    for (std::size_t i = 0; i < observe::kSettled; ++i) {
      const auto index = static_cast<limit::RuleIndex>(rule);
      const auto outcome = static_cast<observe::Settled>(i);
      settled.add({{"outcome", observe::kSettledNames[i]}, {"rule", sources_.rules[rule].name}},
                  sum([&](const Counters& c) { return c.settlements(index, outcome).value(); }));
    }
  }
  put(settled);
}

void Page::tell_messages() {
  Family messages =
      counter("weir_messages_total", "What each rule said to the WebSocket messages that it counts.");
  for (std::size_t rule = 0; rule < sources_.rules.size(); ++rule) {
    if (!sources_.rules[rule].messages) continue;
    for (std::size_t i = 0; i < observe::kMessageOutcomes; ++i) {
      const auto index = static_cast<limit::RuleIndex>(rule);
      const auto outcome = static_cast<observe::MessageOutcome>(i);
      messages.add({{"outcome", observe::kMessageOutcomeNames[i]}, {"rule", sources_.rules[rule].name}},
                   sum([&](const Counters& c) { return c.messages(index, outcome).value(); }));
    }
  }
  put(messages);
}

void Page::durations(const observe::Histogram Counters::*histogram, std::string name, std::string help) {
  observe::Histogram::Reading reading;
  for (const Counters* counters : sources_.counters) reading += (counters->*histogram).read();
  ClientMetric metric;
  metric.histogram.sample_count = reading.count;
  metric.histogram.sample_sum = static_cast<double>(reading.sum_us) / kMicrosPerSecond;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < observe::Histogram::kBounds.size(); ++i) {
    below += reading.counts[i];
    metric.histogram.bucket.push_back({below, observe::Histogram::kBounds[i] / kMicrosPerSecond});
  }
  families_.push_back({std::move(name), std::move(help), MetricType::Histogram, {std::move(metric)}});
}

void Page::tell_durations() {
  durations(&Counters::request_seconds, "weir_request_seconds",
            "From the end of a request's head to the end of its answer.");
  durations(&Counters::decision_seconds, "weir_decision_seconds",
            "To decide where Redis was asked, its round trip included; what is decided in the process takes "
            "about a "
            "microsecond and is not timed.");
  durations(&Counters::upstream_seconds, "weir_upstream_seconds",
            "From a request sent to the head of the upstream's answer.");
}

void Page::tell_connections() {
  total(&Counters::connections_accepted, "weir_connections_accepted_total",
        "Connections accepted from clients.");
  level(&Counters::connections_open, "weir_connections_open", "Client connections that are open.");
  level(&Counters::tunnels_open, "weir_tunnels_open",
        "Connections that changed to another protocol, such as WebSocket, and are open.");
  Family tunnels = counter("weir_tunnels_total", "How those that have ended did.");
  for (std::size_t i = 0; i < observe::kTunnelEnds; ++i) {
    const auto end = static_cast<observe::TunnelEnd>(i);
    tunnels.add({{"end", observe::kTunnelEndNames[i]}},
                sum([&](const Counters& c) { return c.tunnels(end).value(); }));
  }
  put(tunnels);
  total(&Counters::connections_crowded, "weir_connections_crowded_total",
        "Connections closed at once, because their address had max_connections_per_ip of them.");
  total(&Counters::connections_evicted, "weir_connections_evicted_total",
        "Idle connections closed because there was no room for another one.");
  total(&Counters::accept_failures, "weir_accept_failures_total",
        "Times that the system gave no connection: descriptors or memory had run out.");
  total(&Counters::bytes_in, "weir_received_bytes_total", "Bytes from clients, after TLS.");
  total(&Counters::bytes_out, "weir_sent_bytes_total", "Bytes to clients, before TLS.");
}

void Page::each_upstream(observe::Tally observe::UpstreamTallies::*tally, std::string name,
                         std::string help) {
  Family family = counter(std::move(name), std::move(help));
  for (std::size_t i = 0; i < sources_.upstreams.size(); ++i)
    family.add({{"upstream", sources_.upstreams[i]}},
               sum([&](const Counters& c) { return (c.upstream(i).*tally).value(); }));
  put(family);
}

void Page::tell_upstreams() {
  using observe::UpstreamTallies;
  each_upstream(&UpstreamTallies::connects, "weir_upstream_connects_total", "Connections opened to servers.");
  each_upstream(&UpstreamTallies::failures, "weir_upstream_failures_total",
                "Connects that failed and exchanges that broke off.");
  each_upstream(&UpstreamTallies::reused, "weir_upstream_reused_total",
                "Requests that found a connection waiting.");
  each_upstream(&UpstreamTallies::retries, "weir_upstream_retries_total",
                "Times that requests were sent again over another connection.");
  each_upstream(&UpstreamTallies::denied, "weir_upstream_retries_denied_total",
                "Requests not sent again because the budget of that was spent.");
  each_upstream(&UpstreamTallies::crowded, "weir_upstream_crowded_total",
                "Requests that found no server with room for them.");
  each_upstream(&UpstreamTallies::paused, "weir_upstream_paused_total",
                "Requests answered 429 here because the upstream had asked to be left alone.");
  tell_servers();
}

void Page::tell_servers() {
  if (!sources_.servers) return;
  Family healthy = gauge("weir_upstream_healthy", "Whether a server gets requests.");
  Family ejections = counter("weir_upstream_ejections_total", "Times that a server was put out.");
  for (const ServerFigures& figures : sources_.servers()) {
    const Labels labels{{"server", figures.server}, {"upstream", figures.upstream}};
    healthy.add(labels, figures.healthy ? 1.0 : 0.0);
    ejections.add(labels, figures.ejections);
  }
  put(healthy);
  put(ejections);
}

void Page::tell_load() {
  if (!sources_.load) return;
  Family load =
      gauge("weir_load", "What elastic limits look at, from 0 to 1: the busiest worker's, by kind.");
  for (const auto& [kind, value] : sources_.load()) load.add({{"kind", kind}}, value);
  put(load);
}

void Page::tell_keys() {
  if (!sources_.key_table) return;
  const auto stats = sources_.key_table();
  put(gauge("weir_keys", "Keys that the table remembers.").add({}, stats.keys));
  put(gauge("weir_key_slots", "Keys that the table has room for.").add({}, stats.slots));
  put(counter("weir_key_overflows_total", "Charges to an overflow cell because the table was full.")
          .add({}, stats.overflowed));
  put(gauge("weir_log_chunks_used", "Chunks of 64 bytes that logs of single admissions hold.")
          .add({}, stats.log_chunks_used));
  put(gauge("weir_log_chunks", "Chunks that there are.").add({}, stats.log_chunks));
  put(counter("weir_log_merges_total", "Admissions entered with the one before, because no chunk was left.")
          .add({}, stats.log_merged));
}

void Page::tell_redis() {
  if (!sources_.redis) return;
  Family up = gauge("weir_redis_up", "Whether each worker's Redis connection stands.");
  Family calls =
      counter("weir_redis_calls_total", "Bills that Redis was asked for; those of a moment share a call.");
  Family failures =
      counter("weir_redis_failures_total", "Calls without an answer of use, time-outs included.");
  Family timeouts = counter("weir_redis_timeouts_total", "Calls that outlasted their deadline.");
  Family reconnects = counter("weir_redis_reconnects_total", "Connections made anew.");
  Family amendments = counter("weir_redis_amendments_total", "Calls that give charges back or settle them.");
  Family lost = counter("weir_redis_amendments_lost_total", "Of those, not carried out as far as is known.");
  std::size_t worker = 0;
  for (const RedisFigures& figures : sources_.redis()) {
    up.add({{"worker", std::to_string(worker++)}}, figures.up ? 1.0 : 0.0);
    calls.add({}, figures.calls);
    failures.add({}, figures.failures);
    timeouts.add({}, figures.timeouts);
    reconnects.add({}, figures.reconnects);
    amendments.add({}, figures.amendments);
    lost.add({}, figures.amendments_lost);
  }
  for (const Family* family : {&up, &calls, &failures, &timeouts, &reconnects, &amendments, &lost})
    put(*family);
  Family denied = counter("weir_redis_denied_here_total",
                          "Refusals that Redis was not asked for, because it is known to refuse.");
  for (std::size_t rule = 0; rule < sources_.rules.size(); ++rule) {
    if (sources_.rules[rule].store != "redis") continue;
    const auto index = static_cast<limit::RuleIndex>(rule);
    denied.add({{"rule", sources_.rules[rule].name}},
               sum([&](const Counters& c) { return c.denied_here(index).value(); }));
  }
  put(denied);
  tell_leases();
}

void Page::tell_leases() {
  if (!sources_.leases) return;
  const auto stats = sources_.leases();
  put(counter("weir_lease_units_total",
              "Units of keys in Redis that were taken in advance, and what became of them.")
          .add({{"event", "taken"}}, stats.taken)
          .add({{"event", "spent"}}, stats.spent)
          .add({{"event", "put_back"}}, stats.put_back)
          .add({{"event", "returned"}}, stats.returned)
          .add({{"event", "lost"}}, stats.lost));
  put(gauge("weir_lease_units", "Units that are held at the moment.").add({}, stats.held));
  put(counter("weir_lease_keys_crowded_total",
              "Times that a key found no place among those that may be leased.")
          .add({}, stats.crowded));
}

void Page::tell_tls() {
  const auto figures = sources_.certificates ? sources_.certificates() : TlsFigures{};
  if (figures.certificates.empty()) return;
  Family expiry =
      gauge("weir_tls_certificate_not_after_seconds", "Until when a certificate is good, in Unix time.");
  Family staple = gauge("weir_tls_staple_not_after_seconds",
                        "Until when an OCSP response is good, in Unix time; none is stapled later.");
  const auto unix_time = [](std::chrono::sys_seconds at) {
    return static_cast<double>(at.time_since_epoch().count());
  };
  for (const auto& each : figures.certificates) {
    const Labels labels{{"certificate", each.file}, {"listener", each.listener}};
    expiry.add(labels, unix_time(each.not_after));
    if (each.stapled_until) staple.add(labels, unix_time(*each.stapled_until));
  }
  put(expiry);
  put(staple);
  put(counter("weir_tls_renewals_total", "Times that changed files of certificates were read anew.")
          .add({{"result", "ok"}}, figures.renewed)
          .add({{"result", "faulty"}}, figures.faulty));
}

void Page::tell_process() {
  put(gauge("weir_build", "Always 1; says which weir this is.").add({{"version", sources_.version}}, 1.0));
  put(gauge("weir_workers", "Threads that serve.").add({}, sources_.counters.size()));
  std::size_t top_bytes = 0;
  for (const auto* counters : sources_.counters) top_bytes += counters->top ? counters->top->memory() : 0;
  put(gauge("weir_top_memory_bytes", "What it takes to know who spends most.").add({}, top_bytes));
  const auto figures = sources_.process ? sources_.process() : std::nullopt;
  if (!figures) return;
  put(gauge("process_resident_memory_bytes", "Resident memory.").add({}, figures->resident_bytes));
  put(gauge("process_open_fds", "Open file descriptors.").add({}, figures->open_descriptors));
  put(counter("process_cpu_seconds_total", "CPU time, user and system.").add({}, figures->cpu_seconds));
}

}  // namespace

std::string metrics_text(const Sources& sources) {
  Page page(sources);
  page.tell_requests();
  page.tell_decisions();
  page.tell_durations();
  page.tell_connections();
  page.tell_upstreams();
  page.tell_load();
  page.tell_keys();
  page.tell_redis();
  page.tell_tls();
  page.tell_process();
  return page.text();
}

}  // namespace weir::admin
