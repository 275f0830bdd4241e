#include "admin/alerts/alert_registry.hpp"

#include "admin/alerts/alert_message.hpp"
#include "admin/alerts/client_alerts.hpp"
#include "admin/metrics/totals.hpp"

#include "weir/base/siphash.hpp"
#include "weir/net/tls_client.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <unistd.h>

namespace weir::admin {

namespace {

using Change = observe::Surge::Change;

// Returns how many events for this alert weir has counted since weir started. Returns 0 if the alert's rule
// or upstream is no longer configured.
std::uint64_t total_of(const AlertSettings& alert, const Sources& sources) {
  std::uint64_t sum = 0;
  switch (alert.on) {
    case AlertOn::Refusals:
      for (std::size_t i = 0; i < sources.rules.size(); ++i)
        if (sources.rules[i].name == alert.subject)
          sum += total(sources, i, observe::RuleOutcome::Refused) +
                 total(sources, i, observe::RuleOutcome::ShadowRefused);
      break;
    case AlertOn::ClientRefusals:
      break;  // total_of() returns 0; ClientSurges counts these events
    case AlertOn::Upstream:
      for (std::size_t i = 0; i < sources.upstreams.size(); ++i)
        if (sources.upstreams[i] == alert.subject)
          sum += total(sources, [&](const observe::Counters& counters) {
            return counters.upstream(i).failures.value() + counters.upstream(i).errors.value();
          });
      break;
    case AlertOn::Redis:
      if (!sources.redis) break;
      for (const RedisFigures& worker : sources.redis()) sum += worker.failures;
      break;
  }
  return sum;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

// Returns true if the two alerts have the same name, client and webhook, so that the receiver cannot tell
// them apart.
bool sound_alike(const Alert& one, const Alert& other) {
  return one.settings.name == other.settings.name && one.client == other.client &&
         one.settings.webhook == other.settings.webhook;
}

// Returns an ID of the alert: a digest of its name and webhook, and of whether it watches single clients. The
// ID does not contain the URL of the webhook itself, because the URL may be long and contain secrets.
std::string alert_id_of(const AlertSettings& alert) {
  const auto& webhook = alert.webhook;
  const auto digest = base::siphash128({}, alert.name + (webhook.tls ? "\nhttps://" : "\nhttp://") +
                                               webhook.address.to_string() + webhook.target +
                                               (alert.on == AlertOn::ClientRefusals ? "\nclients" : ""));
  return std::to_string(digest.hi) + "." + std::to_string(digest.lo);
}

}  // namespace

AlertRegistry::AlertRegistry(std::string version, std::function<void(const std::string&)> report)
    : version_(std::move(version)), host_(host_name()), report_(std::move(report)) {}

std::shared_ptr<Alert> AlertRegistry::make(AlertSettings settings) {
  net::TlsContext tls;
  if (settings.webhook.tls) {
    auto created = net::make_tls_client_context({.ca = settings.webhook.ca});
    if (!created) throw std::runtime_error("alert " + settings.name + ": " + created.error().message);
    tls = std::move(*created);
  }
  auto figures = std::make_shared<AlertFigures>();
  figures->name = settings.name;
  figures->above = limit::to_string(settings.surge.above);
  observe::Surge surge(settings.surge);
  observe::Delivery delivery({.attempts = settings.posts, .most = settings.attempts});
  auto created = std::make_shared<Alert>(
      Alert{std::move(settings), std::move(tls), std::move(surge), std::move(delivery), std::move(figures)});
  created->figures->per_client = created->settings.on == AlertOn::ClientRefusals;
  if (created->figures->per_client) created->clients.emplace(created->settings.surge);
  return created;
}

void AlertRegistry::change(std::vector<AlertSettings> settings, base::TimePoint now) {
  Alerts changed;
  for (AlertSettings& each : settings) {
    const auto old = std::find_if(alerts_.begin(), alerts_.end(),
                                  [&](const auto& alert) { return alert->settings == each; });
    changed.push_back(old != alerts_.end() ? *old : make(std::move(each)));
  }
  auto before = std::exchange(alerts_, std::move(changed));
  for (const auto& old : before) {
    if (std::find(alerts_.begin(), alerts_.end(), old) != alerts_.end()) continue;
    for (const auto& each : alerts_with_messages(old)) leave(each, now);
    for (const auto& fresh : alerts_) {
      if (fresh->settings.name != old->settings.name) continue;
      old->figures->above = fresh->figures->above;
      old->figures->per_client = fresh->figures->per_client;
      fresh->figures = old->figures;
    }
  }
}

void AlertRegistry::read_authorities() {
  for (const auto* alerts : {&alerts_, &leaving_})
    for (const auto& alert : *alerts) {
      if (!alert->settings.webhook.tls) continue;
      auto created = net::make_tls_client_context({.ca = alert->settings.webhook.ca});
      if (!created) continue;
      alert->tls = std::move(*created);
      for (const auto& of_client : alert->of_clients) of_client->tls = net::share(alert->tls.get());
    }
}

std::vector<std::string> AlertRegistry::alert_ids() const {
  std::vector<std::string> alert_ids;
  for (const auto& alert : alerts_) alert_ids.push_back(alert_id_of(alert->settings));
  return alert_ids;
}

std::vector<AlertState> AlertRegistry::retire(const std::vector<std::string>& alert_ids,
                                              base::TimePoint now) {
  std::vector<AlertState> states;
  for (const auto& alert : std::exchange(alerts_, {}))
    for (const auto& each : alerts_with_messages(alert)) {
      AlertState state{.alert_id = alert_id_of(each->settings),
                       .firing = each->surge.firing(),
                       .undelivered = !each->delivery.empty(),
                       .since = each->surge.since(),
                       .seen = each->surge.seen(),
                       .client = each->client};
      if (std::find(alert_ids.begin(), alert_ids.end(), state.alert_id) == alert_ids.end())
        leave(each, now);
      else if (state.firing || state.undelivered)
        states.push_back(std::move(state));
    }
  return states;
}

void AlertRegistry::go_on(const std::vector<AlertState>& states, base::TimePoint now) {
  for (const auto& alert : alerts_) {
    const auto alert_id = alert_id_of(alert->settings);
    for (const auto& state : states) {
      if (state.alert_id != alert_id || state.client.has_value() != alert->clients.has_value()) continue;
      if (state.client && state.firing) alert->clients->go_on(*state.client, state.since, state.seen, now);
      go_on_with(state.client ? *alert_of(*state.client, *alert) : *alert, state, now);
      if (state.client) note_figures(*alert);
    }
  }
}

void AlertRegistry::go_on_with(Alert& alert, const AlertState& state, base::TimePoint now) {
  alert.surge.go_on(state.firing, state.since, state.seen, now);
  alert.figures->firing = state.firing;
  alert.figures->since = state.since;
  alert.figures->seen = state.seen;
  if (!state.undelivered) return;
  const Change change = state.firing ? Change::Began : Change::Ended;
  (void)alert.delivery.put(message(alert, change, now), now);
}

void AlertRegistry::leave(const std::shared_ptr<Alert>& alert, base::TimePoint now) {
  if (alert->surge.firing()) alert_changed(*alert, Change::Ended, now);
  alert->delivery.give_up_what_is_overdue();
  leaving_.push_back(alert);
}

void AlertRegistry::update(const Sources& sources, base::TimePoint now) {
  add_refusals(alerts_, sources);
  for (const auto& alert : alerts_) {
    if (alert->clients) {
      check_clients(*alert, now);
      continue;
    }
    const Change change = alert->surge.note(total_of(alert->settings, sources), now);
    alert->figures->firing = alert->surge.firing();
    alert->figures->since = alert->surge.since();
    alert->figures->seen = alert->surge.seen();
    if (change != Change::None) alert_changed(*alert, change, now);
  }
}

// Creates the messages of an alert that watches clients, for at most max_clients clients at a time. A client
// counts towards this number until its alert has ended and the message about the end was delivered or given
// up.
void AlertRegistry::check_clients(Alert& alert, base::TimePoint now) {
  drop_silent(alert);
  const auto most = alert.settings.max_clients;
  for (const auto& event : alert.clients->update(now, most - std::min(most, alert.of_clients.size()))) {
    const auto of_client = alert_of(event.client.name, alert);
    of_client->surge = event.client.surge;
    alert_changed(*of_client, event.change, now);
  }
  note_figures(alert);
}

void AlertRegistry::alert_changed(Alert& alert, Change change, base::TimePoint now) {
  auto& figures = *alert.figures;
  if (change == Change::Began) ++figures.fired;
  if (change == Change::Ended) ++figures.ended;
  if (change != Change::Continues)
    report_("alert " + title_of(alert) + (change == Change::Began ? " fires: " : " has ended: ") +
            std::to_string(alert.surge.seen()) + " within the last period, the threshold is " +
            figures.above);
  // Removed alerts with the same name, client and webhook may have waiting messages. The new message replaces
  // these messages.
  figures.superseded += std::erase_if(
      leaving_, [&](const auto& old) { return sound_alike(*old, alert) && !old->delivery.empty(); });
  if (alert.delivery.put(message(alert, change, now), now)) ++figures.superseded;
}

std::string AlertRegistry::message(const Alert& alert, Change change, base::TimePoint now) const {
  return message_of(alert, {.change = change, .at = now, .host = host_, .version = version_});
}

AlertRegistry::Alerts AlertRegistry::alerts_to_post() {
  std::erase_if(leaving_, [](const auto& alert) { return alert->delivery.empty(); });
  auto all = leaving_;
  for (const auto& alert : alerts_) {
    const auto with_messages = alerts_with_messages(alert);
    all.insert(all.end(), with_messages.begin(), with_messages.end());
  }
  return all;
}

std::vector<AlertFigures> AlertRegistry::figures() const {
  std::vector<AlertFigures> figures;
  for (const auto& alert : alerts_) figures.push_back(*alert->figures);
  return figures;
}

}  // namespace weir::admin
