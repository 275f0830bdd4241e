// The admin listener's pages that `weir top` reads, as values.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

// The series of a page in Prometheus' text format with their labels and values. Parses only what weir writes.
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
  // Returns the sum of the series with this name and at least these labels.
  [[nodiscard]] double sum(std::string_view name, const Labels& labels = {}) const;
  [[nodiscard]] bool has(std::string_view name) const;
  // Returns the number of series with this name.
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
  bool shadow = false;  // refuses no request; `refused` has the clients it would refuse
  double seconds = 0;
  std::vector<TopClient> admitted{}, refused{};
};

struct Sample {
  std::chrono::steady_clock::time_point taken;
  Figures figures;
  std::vector<TopRule> top;  // for each rule, in the file's order; without clients if they are not counted
  bool top_is_on = true;     // false: clients are not counted
};
// Returns the growth of a counter's sum per second between two samples; 0 if weir was restarted.
[[nodiscard]] double rate(const Sample& before, const Sample& now, std::string_view name,
                          const Figures::Labels& labels = {});
// Return the rules of a page of /api/top, or of /api/rules, which has no clients. Throw std::runtime_error
// for any other text.
[[nodiscard]] std::vector<TopRule> read_top(std::string_view page);
[[nodiscard]] std::vector<TopRule> read_rules(std::string_view page);

}  // namespace weir::cli
