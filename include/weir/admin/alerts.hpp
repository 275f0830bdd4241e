// Posts alerts to webhooks: when a rule refuses too many requests, or when an upstream or Redis fails too
// often. Posts another message when the problem is over. docs/alerts.md describes the messages.
//
// server::Program owns the object. It runs on the control thread, which serves no requests. Its resources are
// bounded: each alert has at most one waiting message and one connection, and each attempt to post has a time
// limit. A newer message replaces the waiting one.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/admin/sources.hpp"
#include "weir/net/asio.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::admin {

class Alerts {
 public:
  // `report` writes lines to the log. Alerts reads `sources` once a second. All times are by the clock
  // `sources.now`. Throws std::runtime_error if a webhook's `ca` file cannot be read.
  Alerts(net::Executor executor, std::vector<AlertSettings> settings, Sources sources,
         std::function<void(const std::string&)> report);
  // REQUIRES that the executor's io_context no longer runs, or that the caller is on the thread that runs it.
  ~Alerts();
  Alerts(const Alerts&) = delete;
  Alerts& operator=(const Alerts&) = delete;

  // Returns the reason if change() would throw an exception for these settings; otherwise nullopt.
  [[nodiscard]] static std::optional<std::string> fault_of(const std::vector<AlertSettings>& settings);

  void start();
  // Replaces the alerts. Must be called on the executor's thread. An alert with unchanged settings keeps its
  // state. If a removed alert is firing, posts the message that the alert has ended. A new alert continues
  // the counters (AlertFigures) of an old alert with the same name. Throws std::runtime_error if a webhook's
  // `ca` file cannot be read, and then changes nothing.
  void change(std::vector<AlertSettings> settings, Sources sources);

  // Reads the webhooks' files of trusted authorities again. Must be called on the executor's thread.
  void read_authorities();

  // Functions for an upgrade, which must be called on the executor's thread. The new process reports its
  // alert_ids() (AlertState::alert_id of each alert). The old process calls retire() with these IDs. retire()
  // stops the alerts of the old process, and returns the states of the alerts that the new process continues.
  // The new process passes the states to go_on(). So a webhook sees one continuous alert.
  [[nodiscard]] std::vector<std::string> alert_ids() const;
  [[nodiscard]] std::vector<AlertState> retire(const std::vector<std::string>& alert_ids);
  void go_on(const std::vector<AlertState>& states);

  [[nodiscard]] std::vector<AlertFigures> figures() const;
  // Returns how many checks and posts failed because of an internal error of weir.
  [[nodiscard]] std::uint64_t faults() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::admin
