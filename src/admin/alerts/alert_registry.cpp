#include "admin/alerts/alert_registry.hpp"

#include "admin/metrics/totals.hpp"

#include "weir/base/siphash.hpp"
#include "weir/net/tls_client.hpp"
#include "weir/observe/json_value.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <stdexcept>
#include <utility>

#include <boost/json.hpp>
#include <unistd.h>

namespace weir::admin {

namespace {

namespace json = boost::json;
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

// Returns the time as text such as "2026-02-20T10:00:00Z" (RFC 3339).
std::string written(base::TimePoint at) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%FT%TZ", &parts)};
}

const char* subject_name(AlertOn on) {
  constexpr std::array<const char*, 3> kNames{"rule", "upstream", "store"};
  return kNames[static_cast<std::size_t>(on)];
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

// Returns true if the two alerts have the same name and webhook, so that the receiver cannot tell them apart.
bool sound_alike(const Alert& one, const Alert& other) {
  return one.settings.name == other.settings.name && one.settings.webhook == other.settings.webhook;
}

// Returns an ID of the alert: a digest of its name and webhook. The URL of a webhook may be long and contain
// secrets.
std::string alert_id_of(const AlertSettings& alert) {
  const auto& webhook = alert.webhook;
  const auto digest = base::siphash128({}, alert.name + (webhook.tls ? "\nhttps://" : "\nhttp://") +
                                               webhook.address.to_string() + webhook.target);
  return std::to_string(digest.hi) + "." + std::to_string(digest.lo);
}

}  // namespace

AlertRegistry::AlertRegistry(std::string version, std::function<void(const std::string&)> say)
    : version_(std::move(version)), host_(host_name()), say_(std::move(say)) {}

std::shared_ptr<Alert> AlertRegistry::make(AlertSettings settings) {
  net::TlsContext tls;
  if (settings.webhook.tls) {
    auto made = net::make_tls_client_context({.ca = settings.webhook.ca});
    if (!made) throw std::runtime_error("alert " + settings.name + ": " + made.error().message);
    tls = std::move(*made);
  }
  auto figures = std::make_shared<AlertFigures>();
  figures->name = settings.name;
  figures->above = limit::to_string(settings.surge.above);
  observe::Surge surge(settings.surge);
  observe::Delivery delivery({.attempts = settings.posts, .most = settings.attempts});
  return std::make_shared<Alert>(
      Alert{std::move(settings), std::move(tls), std::move(surge), std::move(delivery), std::move(figures)});
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
    leave(old, now);
    for (const auto& fresh : alerts_) {
      if (fresh->settings.name != old->settings.name) continue;
      old->figures->above = fresh->figures->above;
      fresh->figures = old->figures;
    }
  }
}

void AlertRegistry::read_authorities() {
  for (const auto* alerts : {&alerts_, &leaving_})
    for (const auto& alert : *alerts) {
      if (!alert->settings.webhook.tls) continue;
      if (auto made = net::make_tls_client_context({.ca = alert->settings.webhook.ca}))
        alert->tls = std::move(*made);
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
  for (const auto& alert : std::exchange(alerts_, {})) {
    AlertState state{.alert_id = alert_id_of(alert->settings),
                     .firing = alert->surge.firing(),
                     .unsaid = !alert->delivery.empty(),
                     .since = alert->surge.since(),
                     .seen = alert->surge.seen()};
    if (std::find(alert_ids.begin(), alert_ids.end(), state.alert_id) == alert_ids.end())
      leave(alert, now);
    else if (state.firing || state.unsaid)
      states.push_back(std::move(state));
  }
  return states;
}

void AlertRegistry::go_on(const std::vector<AlertState>& states, base::TimePoint now) {
  for (const auto& alert : alerts_) {
    const auto alert_id = alert_id_of(alert->settings);
    const auto state = std::find_if(states.begin(), states.end(),
                                    [&](const AlertState& each) { return each.alert_id == alert_id; });
    if (state == states.end()) continue;
    alert->surge.go_on(state->firing, state->since, state->seen, now);
    alert->figures->firing = state->firing;
    alert->figures->since = state->since;
    alert->figures->seen = state->seen;
    if (!state->unsaid) continue;
    const Change change = state->firing ? Change::Began : Change::Ended;
    (void)alert->delivery.put(message(*alert, change, now), now);
  }
}

void AlertRegistry::leave(const std::shared_ptr<Alert>& alert, base::TimePoint now) {
  if (alert->surge.firing()) tell(*alert, Change::Ended, now);
  alert->delivery.give_up_what_is_overdue();
  leaving_.push_back(alert);
}

void AlertRegistry::look(const Sources& sources, base::TimePoint now) {
  for (const auto& alert : alerts_) {
    const Change change = alert->surge.note(total_of(alert->settings, sources), now);
    alert->figures->firing = alert->surge.firing();
    alert->figures->since = alert->surge.since();
    alert->figures->seen = alert->surge.seen();
    if (change != Change::None) tell(*alert, change, now);
  }
}

void AlertRegistry::tell(Alert& alert, Change change, base::TimePoint now) {
  auto& figures = *alert.figures;
  if (change == Change::Began) ++figures.fired;
  if (change == Change::Ended) ++figures.ended;
  if (change != Change::GoesOn)
    say_("alert " + alert.settings.name + (change == Change::Began ? " fires: " : " has ended: ") +
         std::to_string(figures.seen) + " within the last period, the threshold is " + figures.above);
  // This message replaces waiting messages of removed alerts with the same name and webhook.
  figures.superseded += std::erase_if(
      leaving_, [&](const auto& old) { return sound_alike(*old, alert) && !old->delivery.empty(); });
  if (alert.delivery.put(message(alert, change, now), now)) ++figures.superseded;
}

std::string AlertRegistry::message(const Alert& alert, Change change, base::TimePoint now) const {
  const auto& settings = alert.settings;
  const char* const state = change == Change::Ended ? "ended" : "firing";
  const char* const what = settings.on == AlertOn::Refusals ? "refusals" : "failures";
  const std::string above = limit::to_string(settings.surge.above);
  const std::string text = "weir on " + host_ + ": alert " + settings.name +
                           (change == Change::Ended ? " has ended: " : " is firing: ") +
                           std::to_string(alert.surge.seen()) + " " + what + " of " +
                           subject_name(settings.on) + " " + settings.subject + ", threshold " + above;
  return observe::json_text(json::object{{"alert", settings.name},
                                         {"state", state},
                                         {"repeated", change == Change::GoesOn},
                                         {subject_name(settings.on), settings.subject},
                                         {what, alert.surge.seen()},
                                         {"above", above},
                                         {"since", written(alert.surge.since())},
                                         {"at", written(now)},
                                         {"host", host_},
                                         {"version", version_},
                                         {"text", text}});
}

AlertRegistry::Alerts AlertRegistry::speakers() {
  std::erase_if(leaving_, [](const auto& alert) { return alert->delivery.empty(); });
  auto all = leaving_;
  all.insert(all.end(), alerts_.begin(), alerts_.end());
  return all;
}

std::vector<AlertFigures> AlertRegistry::figures() const {
  std::vector<AlertFigures> figures;
  for (const auto& alert : alerts_) figures.push_back(*alert->figures);
  return figures;
}

}  // namespace weir::admin
