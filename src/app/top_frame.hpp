// What `weir top` shows, as text: from what the admin listener said now and a moment ago.
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

 private:
  std::vector<Series> all_;
};

struct TopClient {
  std::string client, digest;
  double cost = 0, error = 0;
};
struct TopRule {
  std::string rule;
  double seconds = 0;
  std::vector<TopClient> admitted, refused;
};

struct Sample {
  std::chrono::steady_clock::time_point taken;
  Figures figures;
  std::vector<TopRule> top;
  bool top_is_on = true;
};
// Throws std::runtime_error where it is no page of /api/top.
[[nodiscard]] std::vector<TopRule> read_top(std::string_view page);

struct Screen {
  std::size_t width = 80;   // columns
  std::size_t height = 24;  // lines; 0: as many as there are
  bool ansi = false;        // may be coloured
};

// `address`: whom it is of. Each line ends in a newline and has at most `width` columns.
[[nodiscard]] std::string draw(const Sample& before, const Sample& now, std::string_view address,
                               const Screen& screen);
// The same while nobody answers, and why.
[[nodiscard]] std::string draw_absence(std::chrono::seconds absent, std::string_view why,
                                       std::string_view address, const Screen& screen);

}  // namespace weir::app
