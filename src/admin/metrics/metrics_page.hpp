// Builds the metrics page from metric families of prometheus-cpp and sums over all workers.
//
// A MetricsPage exists for one scrape. The files metrics_*.cpp write the families, one file for each subject.
#pragma once

#include "weir/admin/sources.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>

namespace weir::admin {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// One metric family. Adds up the values of series with equal labels, which occur if two routes have the same
// name. Prometheus would reject the whole page if a series appeared twice.
class Family {
 public:
  Family(prometheus::MetricType type, std::string name, std::string help)
      : type_(type), name_(std::move(name)), help_(std::move(help)) {}

  Family& add(Labels labels, double value) {
    values_[std::move(labels)] += value;
    return *this;
  }
  Family& add(Labels labels, std::uint64_t value) {
    return add(std::move(labels), static_cast<double>(value));
  }

  [[nodiscard]] prometheus::MetricFamily build() const;

 private:
  prometheus::MetricType type_;
  std::string name_;
  std::string help_;
  std::map<Labels, double> values_;
};

// One metric family of histograms. Adds up histograms with equal labels, like Family.
class HistogramFamily {
 public:
  using Totals = observe::Histogram::Totals;

  HistogramFamily(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

  void add(Labels labels, const Totals& totals) { values_[std::move(labels)] += totals; }

  [[nodiscard]] prometheus::MetricFamily build() const;

 private:
  std::string name_;
  std::string help_;
  std::map<Labels, Totals> values_;
};

class MetricsPage {
 public:
  explicit MetricsPage(const Sources& sources) : sources_(sources) {}

  [[nodiscard]] const Sources& sources() const noexcept { return sources_; }
  [[nodiscard]] std::string text() const;

  [[nodiscard]] static Family counter(std::string name, std::string help) {
    return {prometheus::MetricType::Counter, std::move(name), std::move(help)};
  }
  [[nodiscard]] static Family gauge(std::string name, std::string help) {
    return {prometheus::MetricType::Gauge, std::move(name), std::move(help)};
  }
  template <class AnyFamily>
  void put(const AnyFamily& family) {
    families_.push_back(family.build());
  }

  // Returns the sum of the results of `read` over the counters of all workers.
  template <class Read>
  [[nodiscard]] double sum(Read read) const {
    double total = 0;
    for (const auto* counters : sources_.counters) total += static_cast<double>(read(*counters));
    return total;
  }

  // Returns the sum of the histograms that `read` returns, over the counters of all workers.
  template <class Read>
  [[nodiscard]] HistogramFamily::Totals sum_of_histograms(Read read) const {
    HistogramFamily::Totals total;
    for (const auto* counters : sources_.counters) total += read(*counters).read();
    return total;
  }

  // Each of the next three functions adds a family with a single series or histogram, summed over all
  // workers.
  void total(observe::Tally observe::Counters::*tally, std::string name, std::string help);
  void level(observe::Gauge observe::Counters::*level, std::string name, std::string help);
  void durations(const observe::Histogram observe::Counters::*histogram, std::string name, std::string help);
  // Each of the next three functions adds a family with one series for each upstream.
  void each_upstream(observe::Tally observe::UpstreamTallies::*tally, std::string name, std::string help);
  void each_upstream(observe::Gauge observe::UpstreamTallies::*level, std::string name, std::string help);
  void each_upstream(observe::Histogram observe::UpstreamTallies::*histogram, std::string name,
                     std::string help);

 private:
  template <class Figure>
  void put_each_upstream(Family family, Figure observe::UpstreamTallies::*figure);

  const Sources& sources_;
  std::vector<prometheus::MetricFamily> families_;
};

// Each of these functions writes the families of one subject. All labels come from the configuration, never
// from a client.
void write_traffic_metrics(MetricsPage& page);    // requests, durations and connections
void write_rules_metrics(MetricsPage& page);      // decisions, settlements, messages and load
void write_state_metrics(MetricsPage& page);      // the key table, Redis, and units taken in advance
void write_upstreams_metrics(MetricsPage& page);  // upstreams and their servers
void write_ask_metrics(MetricsPage& page);        // questions and permits
void write_alerts_metrics(MetricsPage& page);
void write_process_metrics(MetricsPage& page);  // certificates and the process itself

}  // namespace weir::admin
