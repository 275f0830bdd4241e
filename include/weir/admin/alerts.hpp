// Posts to a webhook when a rule refuses too many requests, or when an upstream or Redis fails too often.
// Posts again when that is over. docs/alerts.md describes the messages.
//
// Runs on the control thread, which serves no requests. Every bound is small: each alert has one waiting
// message and one connection, and every attempt has a deadline. A newer message replaces the waiting one.
// alert, over one connection, and an attempt ends with its deadline.
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
  // `say` writes lines to the log. `sources` are read once a second; all times are in their clock.
  Alerts(net::Executor executor, std::vector<AlertSettings> settings, Sources sources,
         std::function<void(const std::string&)> say);
  // REQUIRES that the executor's context no longer runs, or that this is its thread.
  ~Alerts();
  Alerts(const Alerts&) = delete;
  Alerts& operator=(const Alerts&) = delete;

  // Returns the reason why such alerts cannot be made (change() would throw); nullopt if they can.
  [[nodiscard]] static std::optional<std::string> fault_of(const std::vector<AlertSettings>& settings);

  void start();
  // Replaces the alerts, on the executor's thread. An alert with unchanged settings keeps its state. A
  // removed alert that is firing posts that it has ended. A new alert continues the counts of an old alert
  // with the same name.
  void change(std::vector<AlertSettings> settings, Sources sources);

  // Reads the webhooks' authority files again, on the executor's thread.
  void read_authorities();

  // Hand alerts over to a new weir process, on the executor's thread. alert_ids() returns
  // AlertState::alert_id of each alert. The old process calls retire() with the new process's voices, stops
  // those alerts, and returns their states. The new process passes the states to go_on(), so that a webhook
  // sees one continuous alert.
  [[nodiscard]] std::vector<std::string> alert_ids() const;
  [[nodiscard]] std::vector<AlertState> retire(const std::vector<std::string>& alert_ids);
  void go_on(const std::vector<AlertState>& states);

  [[nodiscard]] std::vector<AlertFigures> figures() const;
  // Returns how often a check or a post failed because of a fault in weir.
  [[nodiscard]] std::uint64_t faults() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::admin
