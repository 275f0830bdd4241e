// The data of the admin listener's pages that `weir top` reads.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

// The series of a page in Prometheus' text format, with their labels and values. The parser accepts only the
// subset of the format that weir writes.
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
  // Returns the sum of all series that have this name and at least these labels.
  [[nodiscard]] double sum(std::string_view name, const Labels& labels = {}) const;
  [[nodiscard]] bool has(std::string_view name) const;
  // Returns the number of series with this name.
  [[nodiscard]] std::size_t count(std::string_view name) const;

 private:
  std::vector<Series> all_;
  // Maps the name of a rule (the label `rule`) to the indexes of its series in all_. This makes the sum for a
  // single rule fast, because there may be a thousand rules.
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_rule_;
};

struct TopClient {
  std::string client, digest;
  double cost = 0, error = 0;
};
struct TopRule {
  std::string rule;
  // true: the rule refuses no request, and `refused` has the clients that it would refuse
  bool shadow = false;
  double seconds = 0;
  std::vector<TopClient> admitted{}, refused{};
};

struct Sample {
  std::chrono::steady_clock::time_point taken;
  Figures figures;
  // One entry for each rule, in the order of the configuration. The entries have no clients if weir does not
  // track clients.
  std::vector<TopRule> top;
  bool top_is_on = true;  // false if weir does not track clients
};
// Returns the growth of a counter per second between two samples. Returns 0 if weir was restarted in between.
[[nodiscard]] double rate(const Sample& before, const Sample& now, std::string_view name,
                          const Figures::Labels& labels = {});
// read_top() returns the rules of the page /api/top. read_rules() returns the rules of the page /api/rules,
// without clients. Both throw std::runtime_error if `page` is not the expected page.
[[nodiscard]] std::vector<TopRule> read_top(std::string_view page);
[[nodiscard]] std::vector<TopRule> read_rules(std::string_view page);

}  // namespace weir::cli
