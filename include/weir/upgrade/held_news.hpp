// What a process that has given place still holds of limits of concurrency, told to the one that has taken
// over, so that both together stay within them: lines "KEY KEY UNITS RULE", of so many units more, or fewer.
#pragma once

#include "weir/limit/key_table.hpp"
#include "weir/limit/saved.hpp"
#include "weir/net/asio.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

struct HeldLine {
  limit::Key key;
  std::int64_t units = 0;
  std::string_view rule;  // its name
  friend bool operator==(const HeldLine&, const HeldLine&) = default;
};
[[nodiscard]] std::string text_of(const HeldLine& line);
// nullopt: it is not that. What it returns points into `text`.
[[nodiscard]] std::optional<HeldLine> held_line_of(std::string_view text);

// Such lines in parts that are messages of some 32 KiB each.
[[nodiscard]] std::vector<std::vector<std::string>> in_messages(std::vector<std::string> lines);

// Of the process that gives place. Belongs to the main thread; is told by all. The table outlives it.
class HeldNews {
 public:
  // Takes one message's lines.
  using Tell = std::function<void(const std::vector<std::string>&)>;

  HeldNews(net::Executor control, limit::KeyTable& table) noexcept : control_(control), table_(table) {}
  ~HeldNews();
  HeldNews(const HeldNews&) = delete;
  HeldNews& operator=(const HeldNews&) = delete;

  // What is held now. What changes from now on is kept until somebody is told. REQUIRES as
  // KeyTable::watch_held.
  [[nodiscard]] std::vector<std::string> begin(std::vector<limit::SavedRule> rules);
  // Nobody takes over.
  void stop();
  // Told on the main thread, soon after each change.
  void tell(Tell tell);

 private:
  void note(const limit::HeldUnits& held) noexcept;
  [[nodiscard]] std::vector<std::string> take();
  void send();

  net::Executor control_;
  limit::KeyTable& table_;
  std::vector<limit::SavedRule> rules_;  // only for their names
  Tell tell_;
  std::mutex mutex_;
  std::vector<limit::HeldUnits> news_;  // under the mutex, as the next
  bool sending_ = true;                 // send() will look, or nobody is there to be told
};

}  // namespace weir::app
