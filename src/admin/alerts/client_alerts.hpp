// Alerts that watch the clients of a rule, each alone (AlertOn::ClientRefusals).
#pragma once

#include "admin/alerts/alert_registry.hpp"

namespace weir::admin {

// Adds the refusals that the workers counted since the last call to the clients of these alerts. Tells the
// workers which rules to count from now on.
void add_refusals(const AlertRegistry::Alerts& alerts, const Sources& sources);

// Returns the alert for this client. Creates the alert if there is none.
[[nodiscard]] std::shared_ptr<Alert> alert_of(const observe::NamedClient& client, Alert& alert);
// Removes each alert for a client that neither fires nor has a message to send.
void drop_silent(Alert& alert);

// Returns the alerts that have messages: the alert itself, or the alerts for its clients.
[[nodiscard]] AlertRegistry::Alerts speakers_of(const std::shared_ptr<Alert>& alert);

// Updates the numbers for metrics (AlertFigures) of an alert that watches clients.
void note_figures(Alert& alert);

}  // namespace weir::admin
