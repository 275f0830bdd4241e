// Reading the configuration anew while weir runs: what comes before anything changes. On a thread of its own,
// for names are looked up, files are read and long texts are compared, while the main thread answers health
// checks.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/net/asio.hpp"
#include "weir/upstream/fleet.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace weir::app {

// A reload that takes longer answers that it goes on. Servers' names are looked up one after another, and a
// silent name server may take half a minute for each.
inline constexpr std::chrono::seconds kLongestReload{60};

// What came of a reload.
struct ReloadReport {
  std::vector<std::string> mistakes;  // none: the configuration of the file is in force
  std::vector<std::string> changes;   // in words
  std::vector<std::string> warnings;  // as `weir check` prints them, of what is in force now
  [[nodiscard]] bool ok() const noexcept { return mistakes.empty(); }
};

// A file that was read and checked, with the addresses of its servers and what it says otherwise than what is
// in force; or what is wrong with it.
struct FreshConfiguration {
  std::optional<Settings> settings;
  std::vector<std::vector<upstream::Server>> servers;  // of each upstream
  std::vector<std::string> unknown;                    // LookedUp::unknown
  std::vector<std::string> differences;                // as `weir check` says it (differences.hpp)
  std::vector<std::string> mistakes;
};
[[nodiscard]] FreshConfiguration read_configuration(const std::string& file, const Settings& in_force);

// Reads when asked to, one at a time: who asks while it reads is answered by the next reading, for the file
// may have changed since. Belongs to the main thread.
class Reloading {
 public:
  using Done = std::function<void(const ReloadReport&)>;

  // `apply`: puts what was read in force, or says why not. On the main thread. `in_force`: outlives it, and
  // changes in `apply` alone, for another thread reads it meanwhile.
  Reloading(net::asio::io_context& control, std::string file, const Settings& in_force,
            std::function<ReloadReport(FreshConfiguration)> apply);
  ~Reloading();  // waits for the reading that is under way
  Reloading(const Reloading&) = delete;
  Reloading& operator=(const Reloading&) = delete;

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] bool is_under_way() const noexcept { return reader_.joinable(); }
  // `done`: told on the main thread; may be empty.
  void ask(Done done);

  [[nodiscard]] std::uint64_t succeeded() const noexcept { return succeeded_; }
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
  [[nodiscard]] bool last_succeeded() const noexcept { return last_succeeded_; }
  // When the present configuration came into force.
  [[nodiscard]] std::chrono::system_clock::time_point since() const noexcept { return since_; }

 private:
  void begin();
  void end(FreshConfiguration fresh);
  void finish(const ReloadReport& report);

  net::asio::io_context& control_;
  const std::string file_;
  const Settings& in_force_;
  const std::function<ReloadReport(FreshConfiguration)> apply_;
  std::vector<Done> waiting_;  // for the reading under way
  std::vector<Done> next_;     // for the one after it
  bool asked_again_ = false;
  std::thread reader_;  // joinable while it reads
  std::uint64_t succeeded_ = 0;
  std::uint64_t failed_ = 0;
  bool last_succeeded_ = true;
  std::chrono::system_clock::time_point since_ = std::chrono::system_clock::now();
};

}  // namespace weir::app
