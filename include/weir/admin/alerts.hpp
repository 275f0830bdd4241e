// Alerts: tells a webhook when a rule refuses more than it should, or an upstream or Redis fails more than it
// should, and when that is over. docs/alerts.md says what is posted.
//
// Lives on the control thread, which serves no request. Every bound is small: one message waits for each
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
  // `say` takes lines for the log. `sources` are read once a second; the instants are theirs.
  Alerts(net::Executor executor, std::vector<AlertSettings> settings, Sources sources,
         std::function<void(const std::string&)> say);
  // REQUIRES that the executor's context does not run any more, or that this is its thread.
  ~Alerts();
  Alerts(const Alerts&) = delete;
  Alerts& operator=(const Alerts&) = delete;

  // Why such alerts cannot be made, as change() would throw; none: they can.
  [[nodiscard]] static std::optional<std::string> fault_of(const std::vector<AlertSettings>& settings);

  void start();
  // Goes on with others, on the executor's thread: an alert whose settings stay the same goes on as it is,
  // one that fires and is gone says that it has ended, and what was counted under a name goes on for whatever
  // has that name.
  void change(std::vector<AlertSettings> settings, Sources sources);

  // Reads the files again that say whom webhooks believe, on the executor's thread.
  void read_authorities();

  // For a process of weir that takes over from this one, on the executor's thread. `voices`: of which there
  // are, as AlertStanding::voice. Who retires hears whose the other has, goes silent of those, and says how
  // they stand; the other goes on with that, so that a webhook hears of one alert.
  [[nodiscard]] std::vector<std::string> voices() const;
  [[nodiscard]] std::vector<AlertStanding> retire(const std::vector<std::string>& voices);
  void go_on(const std::vector<AlertStanding>& standings);

  [[nodiscard]] std::vector<AlertFigures> figures() const;
  // How often looking or posting failed by a fault of weir's own.
  [[nodiscard]] std::uint64_t faults() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::admin
