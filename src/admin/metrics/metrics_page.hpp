// The metrics page under construction: metric families of prometheus-cpp, and sums over workers.
//
// Exists for one scrape. The metrics_*.cpp files write the families, by subject.
#pragma once

#include "weir/admin/sources.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>

namespace weir::admin {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// One family. Adds up the values of equal labels, because two routes may have one name. Prometheus rejects a
// whole page with a series that appears twice.
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
  void put(const Family& family) { families_.push_back(family.build()); }

  // Returns the sum of what `read` finds in the counters of each worker.
  template <class Read>
  [[nodiscard]] double sum(Read read) const {
    double total = 0;
    for (const auto* counters : sources_.counters) total += static_cast<double>(read(*counters));
    return total;
  }

  // Put a family of one series, or a histogram, over all workers.
  void total(observe::Tally observe::Counters::*tally, std::string name, std::string help);
  void level(observe::Gauge observe::Counters::*level, std::string name, std::string help);
  void durations(const observe::Histogram observe::Counters::*histogram, std::string name, std::string help);
  // Put a family with a series for each upstream.
  void each_upstream(observe::Tally observe::UpstreamTallies::*tally, std::string name, std::string help);
  void each_upstream(observe::Gauge observe::UpstreamTallies::*level, std::string name, std::string help);

 private:
  template <class Figure>
  void put_each_upstream(Family family, Figure observe::UpstreamTallies::*figure);

  const Sources& sources_;
  std::vector<prometheus::MetricFamily> families_;
};

// Write the families of one subject. Labels come from the configuration, never from a client.
void tell_traffic(MetricsPage& page);    // requests, durations, connections
void tell_rules(MetricsPage& page);      // decisions, what settles them, messages, load
void tell_state(MetricsPage& page);      // the key table, Redis, leases
void tell_upstreams(MetricsPage& page);  // upstreams and their servers
void tell_alerts(MetricsPage& page);
void tell_process(MetricsPage& page);  // certificates and the process itself

}  // namespace weir::admin
