// Reads and checks a changed configuration file while weir runs. FileThread reads files, looks up names, and
// compares the old and new text. Meanwhile the main thread answers health checks.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/net/asio.hpp"
#include "weir/upstream/server_group.hpp"
#include "weir/upstream/services.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir::server {

class FileThread;

// The longest time that the admin listener waits for the result of a reload. After that time, the reply says
// that the reload continues, for example because name servers are silent.
inline constexpr std::chrono::seconds kLongestReload{60};
// The longest time that the admin listener waits for a change of the keys file. After that time, the reply
// says that the change continues, for example because the disk is slow.
inline constexpr std::chrono::seconds kLongestApiKeyChange{20};

// The result of a reload.
struct ReloadReport {
  // mistakes in the file; empty if weir now uses the configuration in the file
  std::vector<std::string> mistakes;
  std::vector<std::string> changes;   // changes to the configuration, in words
  std::vector<std::string> warnings;  // the output of `weir check` for the configuration in use
  [[nodiscard]] bool ok() const noexcept { return mistakes.empty(); }
};

// The result of reading and checking the configuration file. If the file has no mistakes, the result has the
// settings, the addresses of the servers, and the differences from the configuration in use. Otherwise only
// `mistakes` and `files` are set.
struct FreshConfiguration {
  std::optional<config::Settings> settings;
  std::vector<upstream::ResolvedUpstream> upstreams;  // with the addresses of their servers
  std::vector<std::string> unknown;      // names that could not be looked up (LookupResult::unknown)
  std::vector<std::string> differences;  // in the form that config/differences.hpp describes
  std::vector<std::string> mistakes;
  std::vector<config::WatchedFile> files;  // set only after a mistake: the files that the configuration names
};
[[nodiscard]] FreshConfiguration read_configuration(const std::string& file,
                                                    const config::Settings& in_force);

// Reads the configuration file on request. Only one reading runs at a time. A request during a reading causes
// a second reading after the first, because the file may have changed since the first one began. Program owns
// the object, which belongs to the main thread.
class Reloading {
 public:
  using Done = std::function<void(const ReloadReport&)>;

  // `apply` is called on the main thread, and must put the configuration into use, or report why it cannot.
  // `in_force`: the configuration in use, which must outlive this object. Jobs on `thread` compare the file
  // with `in_force`. So only `apply`, and the Done callbacks of `thread`, may change `in_force`.
  Reloading(FileThread& thread, std::string file, const config::Settings& in_force,
            std::function<ReloadReport(FreshConfiguration)> apply);
  Reloading(const Reloading&) = delete;
  Reloading& operator=(const Reloading&) = delete;

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] bool is_under_way() const noexcept { return reading_; }
  // Requests a reading of the file. `done` is called on the main thread with the result; `done` may be empty.
  void ask(Done done);

  [[nodiscard]] std::uint64_t succeeded() const noexcept { return succeeded_; }
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }
  [[nodiscard]] bool last_succeeded() const noexcept { return last_succeeded_; }
  // Returns the time at which weir began to use the present configuration.
  [[nodiscard]] std::chrono::system_clock::time_point since() const noexcept { return since_; }

 private:
  void begin();
  void end(FreshConfiguration fresh, const std::string& fault);
  void finish(const ReloadReport& report);

  FileThread& thread_;
  const std::string file_;
  const config::Settings& in_force_;
  const std::function<ReloadReport(FreshConfiguration)> apply_;
  std::vector<Done> waiting_;  // callbacks of requests that get the result of the reading under way
  std::vector<Done> next_;     // callbacks of requests that get the result of the next reading
  bool requested_again_ = false;
  bool reading_ = false;  // true while a reading runs, or waits for other jobs of the thread
  std::uint64_t succeeded_ = 0;
  std::uint64_t failed_ = 0;
  bool last_succeeded_ = true;
  std::chrono::system_clock::time_point since_ = std::chrono::system_clock::now();
};

}  // namespace weir::server
