// Reads the configuration again while weir runs, before anything changes. A separate thread looks names up,
// reads files and compares the texts. Meanwhile the main thread answers health checks.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/net/asio.hpp"
#include "weir/upstream/server_group.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace weir::server {

// After this time the reply to a reload request says that the reload continues. Servers' names are looked up
// one after another, and a silent name server may take half a minute for each.
inline constexpr std::chrono::seconds kLongestReload{60};

// The result of a reload.
struct ReloadReport {
  std::vector<std::string> mistakes;  // empty: the file's configuration is in use
  std::vector<std::string> changes;   // in words
  std::vector<std::string> warnings;  // the output of `weir check` for the configuration in use
  [[nodiscard]] bool ok() const noexcept { return mistakes.empty(); }
};

// A file that was read and checked, with the addresses of its servers and its differences from the
// configuration in use. Otherwise the mistakes of the file.
struct FreshConfiguration {
  std::optional<config::Settings> settings;
  std::vector<std::vector<upstream::Server>> servers;  // for each upstream
  std::vector<std::string> unknown;                    // LookupResult::unknown
  std::vector<std::string> differences;                // in the words of differences.hpp
  std::vector<std::string> mistakes;
};
[[nodiscard]] FreshConfiguration read_configuration(const std::string& file,
                                                    const config::Settings& in_force);

// Reads the file on request, one reading at a time. A request during a reading waits for the next one,
// because the file may have changed since. Belongs to the main thread.
class Reloading {
 public:
  using Done = std::function<void(const ReloadReport&)>;

  // `apply` runs on the main thread. It puts the configuration into use, or returns why not. `in_force`
  // outlives this object. Only `apply` changes it, because the reading thread reads it too.
  Reloading(net::asio::io_context& control, std::string file, const config::Settings& in_force,
            std::function<ReloadReport(FreshConfiguration)> apply);
  ~Reloading();  // waits for the reader thread
  Reloading(const Reloading&) = delete;
  Reloading& operator=(const Reloading&) = delete;

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] bool is_under_way() const noexcept { return reader_.joinable(); }
  // Asks for a reading. `done` runs on the main thread; it may be empty.
  void ask(Done done);

  [[nodiscard]] std::uint64_t succeeded() const noexcept { return succeeded_; }
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
  [[nodiscard]] bool last_succeeded() const noexcept { return last_succeeded_; }
  // Returns the time at which the present configuration came into use.
  [[nodiscard]] std::chrono::system_clock::time_point since() const noexcept { return since_; }

 private:
  void begin();
  void end(FreshConfiguration fresh);
  void finish(const ReloadReport& report);

  net::asio::io_context& control_;
  const std::string file_;
  const config::Settings& in_force_;
  const std::function<ReloadReport(FreshConfiguration)> apply_;
  std::vector<Done> waiting_;  // for the present reading
  std::vector<Done> next_;     // for the next reading
  bool asked_again_ = false;
  std::thread reader_;  // joinable while it reads
  std::uint64_t succeeded_ = 0;
  std::uint64_t failed_ = 0;
  bool last_succeeded_ = true;
  std::chrono::system_clock::time_point since_ = std::chrono::system_clock::now();
};

}  // namespace weir::server
