// Writes the metrics page. Uses only the serialiser of prometheus-cpp. The registry of prometheus-cpp would
// lock and store values, but weir reads its own counters for each scrape.
#include "admin/metrics/metrics_page.hpp"
#include "admin/pages/answer.hpp"

#include <prometheus/text_serializer.h>

namespace weir::admin {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Family::build() const {
  MetricFamily family{name_, help_, type_, {}};
  for (const auto& [labels, value] : values_) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = labels;
    (type_ == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  }
  return family;
}

MetricFamily HistogramFamily::build() const {
  constexpr double kMicrosPerSecond = 1e6;
  MetricFamily family{name_, help_, MetricType::Histogram, {}};
  for (const auto& [labels, totals] : values_) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = labels;
    metric.histogram.sample_count = totals.count;
    metric.histogram.sample_sum = static_cast<double>(totals.sum_us) / kMicrosPerSecond;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < observe::Histogram::kBounds.size(); ++i) {
      below += totals.counts[i];
      metric.histogram.bucket.push_back({below, observe::Histogram::kBounds[i] / kMicrosPerSecond});
    }
  }
  return family;
}

std::string MetricsPage::text() const {
  return prometheus::TextSerializer().Serialize(families_);
}

void MetricsPage::total(observe::Tally observe::Counters::*tally, std::string name, std::string help) {
  const auto read = [&](const observe::Counters& counters) { return (counters.*tally).value(); };
  put(counter(std::move(name), std::move(help)).add({}, sum(read)));
}

void MetricsPage::level(observe::Gauge observe::Counters::*level, std::string name, std::string help) {
  const auto read = [&](const observe::Counters& counters) { return (counters.*level).value(); };
  put(gauge(std::move(name), std::move(help)).add({}, sum(read)));
}

void MetricsPage::each_upstream(observe::Tally observe::UpstreamTallies::*tally, std::string name,
                                std::string help) {
  put_each_upstream(counter(std::move(name), std::move(help)), tally);
}

void MetricsPage::each_upstream(observe::Gauge observe::UpstreamTallies::*level, std::string name,
                                std::string help) {
  put_each_upstream(gauge(std::move(name), std::move(help)), level);
}

template <class Figure>
void MetricsPage::put_each_upstream(Family family, Figure observe::UpstreamTallies::*figure) {
  for (std::size_t i = 0; i < sources_.upstreams.size(); ++i) {
    if (sources_.upstreams[i].empty()) continue;
    const auto read = [&](const observe::Counters& counters) {
      return (counters.upstream(i).*figure).value();
    };
    family.add({{"upstream", sources_.upstreams[i]}}, sum(read));
  }
  put(family);
}

void MetricsPage::each_upstream(observe::Histogram observe::UpstreamTallies::*histogram, std::string name,
                                std::string help) {
  HistogramFamily family(std::move(name), std::move(help));
  for (std::size_t i = 0; i < sources_.upstreams.size(); ++i) {
    if (sources_.upstreams[i].empty()) continue;
    const auto read = [&](const observe::Counters& counters) -> const observe::Histogram& {
      return counters.upstream(i).*histogram;
    };
    family.add({{"upstream", sources_.upstreams[i]}}, sum_of_histograms(read));
  }
  put(family);
}

void MetricsPage::durations(const observe::Histogram observe::Counters::*histogram, std::string name,
                            std::string help) {
  HistogramFamily family(std::move(name), std::move(help));
  family.add({}, sum_of_histograms([&](const observe::Counters& counters) -> const observe::Histogram& {
               return counters.*histogram;
             }));
  put(family);
}

std::string metrics_text(const Sources& sources) {
  MetricsPage page(sources);
  write_traffic_metrics(page);
  write_rules_metrics(page);
  write_upstreams_metrics(page);
  write_state_metrics(page);
  write_ask_metrics(page);
  write_alerts_metrics(page);
  write_process_metrics(page);
  return page.text();
}

}  // namespace weir::admin
