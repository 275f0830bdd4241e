// Alerts that watch each client of a rule separately (AlertOn::ClientRefusals).
#pragma once

#include "admin/alerts/alert_registry.hpp"

namespace weir::admin {

// Reads the refusals that the workers have counted since the last call, and adds them to the clients that
// `alerts` watch. Tells the workers for which rules they must count refusals from now on.
void add_refusals(const AlertRegistry::Alerts& alerts, const Sources& sources);

// Returns the alert that `alert` has for this client. Creates the alert if there is none.
[[nodiscard]] std::shared_ptr<Alert> alert_of(const observe::NamedClient& client, Alert& alert);
// Removes each client's alert that neither fires nor has a message to send.
void drop_silent(Alert& alert);

// Returns the alerts that send the messages of `alert`: `alert` itself or, if it watches clients, the alerts
// for these clients.
[[nodiscard]] AlertRegistry::Alerts alerts_with_messages(const std::shared_ptr<Alert>& alert);

// Updates the numbers for metrics (AlertFigures) of an alert that watches clients.
void note_figures(Alert& alert);

}  // namespace weir::admin
