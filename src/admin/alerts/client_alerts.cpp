#include "admin/alerts/client_alerts.hpp"

#include <algorithm>

namespace weir::admin {

namespace {

// Returns true if the alert watches the clients of this rule.
bool watches(const Alert& alert, const RuleText& rule) {
  return alert.clients && alert.settings.subject == rule.name;
}

}  // namespace

void add_refusals(const AlertRegistry::Alerts& alerts, const Sources& sources) {
  std::vector<const RuleText*> rules;
  std::vector<limit::RuleIndex> indexes;
  for (const auto& rule : sources.rules) {
    const auto watched = [&](const auto& alert) { return watches(*alert, rule); };
    if (std::none_of(alerts.begin(), alerts.end(), watched)) continue;
    rules.push_back(&rule);
    indexes.push_back(rule.index);
  }
  for (const auto* counters : sources.counters) {
    counters->refused_clients->watch(indexes);
    for (const auto* rule : rules) {
      observe::SpaceSaving counts(observe::RefusedClients::kCounters);
      counters->refused_clients->take(rule->index, counts);
      for (const auto& alert : alerts) {
        if (!watches(*alert, *rule)) continue;
        for (const auto& counter : counts.counters())
          alert->clients->add(counter.client, counter.text(), counter.count - counter.error);
      }
    }
  }
}

std::shared_ptr<Alert> alert_of(const observe::NamedClient& client, Alert& alert) {
  for (const auto& each : alert.of_clients)
    if (each->client->digest == client.digest) return each;
  const auto& settings = alert.settings;
  auto created = std::make_shared<Alert>(
      Alert{.settings = settings,
            .tls = net::share(alert.tls.get()),
            .surge = observe::Surge(settings.surge),
            .delivery = observe::Delivery({.attempts = settings.posts, .most = settings.attempts}),
            .figures = alert.figures,
            .lookup = alert.lookup,
            .client = client});
  alert.of_clients.push_back(created);
  return created;
}

void drop_silent(Alert& alert) {
  std::erase_if(alert.of_clients,
                [](const auto& each) { return !each->surge.firing() && each->delivery.empty(); });
}

AlertRegistry::Alerts alerts_with_messages(const std::shared_ptr<Alert>& alert) {
  return alert->clients ? alert->of_clients : AlertRegistry::Alerts{alert};
}

void note_figures(Alert& alert) {
  auto& figures = *alert.figures;
  const auto dropped = alert.clients->take_dropped();
  figures.replaced += dropped.replaced;
  figures.unreported += dropped.unreported;
  figures.clients = 0;
  figures.seen = 0;
  for (const auto& client : alert.clients->clients()) {
    figures.seen = std::max(figures.seen, client.surge.seen());
    if (!client.reported) continue;
    const auto since = client.surge.since();
    figures.since = figures.clients == 0 ? since : std::min(figures.since, since);
    ++figures.clients;
  }
  figures.firing = figures.clients != 0;
}

}  // namespace weir::admin
