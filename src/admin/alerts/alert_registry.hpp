// The list of alerts with their states and waiting messages: the part of alerts without connections. Times
// are arguments.
//
// If an alert is removed, or its settings change while it fires, its webhook must hear that it has ended.
// Such an alert stays here until that message was delivered or given up. Belongs to one thread.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/admin/sources.hpp"
#include "weir/base/time.hpp"
#include "weir/net/name_lookup.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/observe/delivery.hpp"
#include "weir/observe/surge.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weir::admin {

struct Alert {
  AlertSettings settings;
  net::TlsContext tls;  // null if the webhook does not use TLS
  observe::Surge surge;
  observe::Delivery delivery;
  std::shared_ptr<AlertFigures> figures;  // shared by all alerts that have had this name, one after another
  // The addresses of the webhook's host.
  std::unique_ptr<net::NameLookup> lookup = std::make_unique<net::NameLookup>();
};

class AlertRegistry {
 public:
  // Shared with a running post, which may outlive a change.
  using Alerts = std::vector<std::shared_ptr<Alert>>;

  // `say` writes lines to the log. `version`: weir's version, for the messages.
  AlertRegistry(std::string version, std::function<void(const std::string&)> say);

  // Throws if the `ca` of a webhook cannot be read.
  [[nodiscard]] static std::shared_ptr<Alert> make(AlertSettings settings);

  // Replaces the alerts. An alert with unchanged settings keeps its state. Throws like make(), and then
  // nothing has changed.
  void change(std::vector<AlertSettings> settings, base::TimePoint now);

  // Reads the webhooks' authority files again for later messages. A faulty file is ignored, and the former
  // content stays in use.
  void read_authorities();

  // Returns AlertState::alert_id of each alert.
  [[nodiscard]] std::vector<std::string> alert_ids() const;
  // Ends all alerts. Another process continues those of `alert_ids` and sends their waiting messages. Returns
  // the states of those that fire or have a waiting message. Other alerts are removed as change() removes
  // them.
  [[nodiscard]] std::vector<AlertState> retire(const std::vector<std::string>& alert_ids,
                                               base::TimePoint now);
  // Continues alerts from which another process has retired.
  void go_on(const std::vector<AlertState>& states, base::TimePoint now);

  // Must be called once a second. Counts events and creates messages.
  void look(const Sources& sources, base::TimePoint now);

  // Returns all alerts that may have a message, removed ones first. Forgets removed alerts without a message.
  [[nodiscard]] Alerts speakers();

  [[nodiscard]] std::vector<AlertFigures> figures() const;

 private:
  void leave(const std::shared_ptr<Alert>& alert, base::TimePoint now);
  void tell(Alert& alert, observe::Surge::Change change, base::TimePoint now);
  [[nodiscard]] std::string message(const Alert& alert, observe::Surge::Change change,
                                    base::TimePoint now) const;

  const std::string version_;
  const std::string host_;
  std::function<void(const std::string&)> say_;
  Alerts alerts_;  // in the order of the configuration
  Alerts leaving_;
};

}  // namespace weir::admin
