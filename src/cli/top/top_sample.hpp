// What `weir top` asks of the admin listener, as values: pages of text and JSON, read.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

// A page in Prometheus' text format, as far as weir writes it: each series with its labels, and its value.
class Figures {
 public:
  using Labels = std::map<std::string, std::string, std::less<>>;
  struct Series {
    std::string name;
    Labels labels;
    double value = 0;
  };

  Figures() = default;
  explicit Figures(std::string_view page);

  [[nodiscard]] const std::vector<Series>& all() const noexcept { return all_; }
  // The sum of those with this name and, among others, these labels.
  [[nodiscard]] double sum(std::string_view name, const Labels& labels = {}) const;
  [[nodiscard]] bool has(std::string_view name) const;
  // How many series have this name.
  [[nodiscard]] std::size_t count(std::string_view name) const;

 private:
  std::vector<Series> all_;
};

struct TopClient {
  std::string client, digest;
  double cost = 0, error = 0;
};
struct TopRule {
  std::string rule;
  bool shadow = false;  // it refuses nobody: `refused` are those whom it would
  double seconds = 0;
  std::vector<TopClient> admitted{}, refused{};
};

struct Sample {
  std::chrono::steady_clock::time_point taken;
  Figures figures;
  std::vector<TopRule> top;  // of each rule, in the file's order; without clients where nobody counts them
  bool top_is_on = true;     // else nobody does
};
// Returns by how much the sum of a counter grew a second between two samples; 0 if weir was started anew.
[[nodiscard]] double rate(const Sample& before, const Sample& now, std::string_view name,
                          const Figures::Labels& labels = {});
// Both throw std::runtime_error where it is no page of /api/top, or of /api/rules, which has the rules alone.
[[nodiscard]] std::vector<TopRule> read_top(std::string_view page);
[[nodiscard]] std::vector<TopRule> read_rules(std::string_view page);

}  // namespace weir::app
