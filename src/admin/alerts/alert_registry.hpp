// The alerts with their states and waiting messages. AlertRegistry uses no connections, and gets times as
// arguments.
//
// If an alert is removed or its settings change while it fires, its webhook must receive the message that the
// alert has ended. The registry keeps the removed alert until this message was delivered or given up. Alerts
// owns the registry; only the control thread uses it.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/admin/sources.hpp"
#include "weir/base/time.hpp"
#include "weir/net/name_lookup.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/observe/client_surges.hpp"
#include "weir/observe/delivery.hpp"
#include "weir/observe/surge.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::admin {

struct Alert {
  AlertSettings settings;
  net::TlsContext tls;  // null if the webhook's URL does not use TLS
  observe::Surge surge;
  observe::Delivery delivery;
  // Numbers for the metrics. An alert shares this object with earlier alerts of the same name.
  std::shared_ptr<AlertFigures> figures;
  // Looks up the addresses of the webhook's host.
  std::shared_ptr<net::NameLookup> lookup = std::make_shared<net::NameLookup>();

  // The next two members are used only if the alert watches the clients of a rule (AlertOn::ClientRefusals).
  // Such an alert does not use `surge` and `delivery`. It owns one alert for each client whose alert fires or
  // has a message to send.
  std::optional<observe::ClientSurges> clients{};
  std::vector<std::shared_ptr<Alert>> of_clients{};
  // Set only if this is the alert for one client. Such an alert shares its settings, figures and look-ups
  // with the alert that watches the clients.
  std::optional<observe::NamedClient> client{};
};

class AlertRegistry {
 public:
  // Alerts are shared with running posts, which may still use an alert that change() has removed.
  using Alerts = std::vector<std::shared_ptr<Alert>>;

  // `report` writes lines to the log. `version`: weir's version, which appears in the messages.
  AlertRegistry(std::string version, std::function<void(const std::string&)> report);

  // Returns a new alert. Throws std::runtime_error if the webhook's `ca` file cannot be read.
  [[nodiscard]] static std::shared_ptr<Alert> make(AlertSettings settings);

  // Replaces the alerts. An alert with unchanged settings keeps its state. Throws std::runtime_error if a
  // webhook's `ca` file cannot be read, and then changes nothing.
  void change(std::vector<AlertSettings> settings, base::TimePoint now);

  // Reads the webhooks' files of trusted authorities again, for later messages. If a file is faulty, the
  // content that was read before stays in use.
  void read_authorities();

  // Returns AlertState::alert_id of each alert.
  [[nodiscard]] std::vector<std::string> alert_ids() const;
  // Stops all alerts in the old process of an upgrade. `alert_ids`: the alerts of the new process. Returns
  // the states of the old alerts with these IDs, but leaves out alerts that neither fire nor have a waiting
  // message. The new process continues the returned alerts and sends their waiting messages. Alerts with
  // other IDs are removed as by change().
  [[nodiscard]] std::vector<AlertState> retire(const std::vector<std::string>& alert_ids,
                                               base::TimePoint now);
  // Continues alerts of the old process. `states`: the result of the old process's retire().
  void go_on(const std::vector<AlertState>& states, base::TimePoint now);

  // Counts events and creates messages that are due. Must be called once a second.
  void update(const Sources& sources, base::TimePoint now);

  // Returns all alerts that may have a message to send, removed alerts first. Deletes the removed alerts that
  // have no message.
  [[nodiscard]] Alerts alerts_to_post();

  [[nodiscard]] std::vector<AlertFigures> figures() const;

 private:
  // Removes an alert. If the alert is firing, creates the message that the alert has ended.
  void leave(const std::shared_ptr<Alert>& alert, base::TimePoint now);
  void check_clients(Alert& alert, base::TimePoint now);
  void go_on_with(Alert& alert, const AlertState& state, base::TimePoint now);
  void alert_changed(Alert& alert, observe::Surge::Change change, base::TimePoint now);
  [[nodiscard]] std::string message(const Alert& alert, observe::Surge::Change change,
                                    base::TimePoint now) const;

  const std::string version_;
  const std::string host_;
  std::function<void(const std::string&)> report_;
  Alerts alerts_;  // in the order of the configuration
  // Removed alerts that may still have a message to send.
  Alerts leaving_;
};

}  // namespace weir::admin
