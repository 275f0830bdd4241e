// Reads [[alert]].
#include "config/read/settings_sections.hpp"

#include "weir/config/locations.hpp"
#include "weir/net/tls_client.hpp"

#include <algorithm>
#include <utility>

namespace weir::config {

namespace {

constexpr std::size_t kMostAlerts = 100;
constexpr std::size_t kLongestTarget = 2048;
constexpr base::Duration kShortestPeriod{1'000'000};  // weir checks for surges once a second
constexpr base::Duration kLongestTimeout{60'000'000};

// is_visible() returns true if a request line may contain the text. is_field_value() returns true if the
// value of a header field may contain the text.
bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}
bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// Parses "https://host[:port][/path][?query]"; nullopt for any other text. Rejects an address with a user or
// a password, because the log would show it.
std::optional<admin::Webhook> parse_webhook(std::string_view text) {
  constexpr std::pair<std::string_view, const char*> kSchemes[] = {{"https://", ":443"}, {"http://", ":80"}};
  for (const auto& [scheme, port] : kSchemes) {
    if (!text.starts_with(scheme)) continue;
    const auto rest = text.substr(scheme.size());
    const auto end = std::min(rest.find_first_of("/?#"), rest.size());
    const std::string authority(rest.substr(0, end));
    std::string target(rest.substr(end, rest.find('#', end) - end));
    if (!target.starts_with('/')) target.insert(0, 1, '/');
    auto address = base::parse_endpoint(authority);
    if (!address) address = base::parse_endpoint(authority + port);
    const bool good = address && !address->is_unix() && address->port != 0 && is_visible(authority) &&
                      authority.find('@') == std::string::npos && is_visible(target) &&
                      target.size() <= kLongestTarget;
    if (!good) return std::nullopt;
    admin::Webhook webhook;
    webhook.address = *address;
    webhook.tls = scheme == "https://";
    webhook.target = std::move(target);
    return webhook;
  }
  return std::nullopt;
}

// Returns the part of the URL between "://" and the path.
std::string_view authority_of(std::string_view url) {
  const auto start = url.find("://");
  if (start == std::string_view::npos) return {};
  url.remove_prefix(start + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

void read_webhook(const TableReader& table, const ReadContext& context, admin::Webhook& webhook) {
  if (!table.has("webhook")) return;
  const auto url = table.text("webhook");
  auto parsed = parse_webhook(url);
  if (!parsed)
    return table.mistake("webhook",
                         "found an address that is no webhook; " + about_port(authority_of(url)) +
                             "expected one such as "
                             "\"https://hooks.example.com/weir\", at most 2048 characters, without a user");
  webhook = std::move(*parsed);
  webhook.authorization = table.text("authorization");
  if (!is_field_value(webhook.authorization))
    table.mistake("authorization", "found characters that a header cannot contain; expected visible ASCII");
  if (!table.has("ca")) return;
  if (!webhook.tls)
    return table.mistake("ca", "found with a webhook that is not https://; remove ca, or write https://");
  webhook.ca = readable_file(table, "ca", context);
  if (is_unreadable(webhook.ca)) return;
  if (const auto made = net::make_tls_client_context({.ca = webhook.ca}); !made)
    table.mistake("ca", made.error().message);
}

// Reads the subject of the alert (the setting `rule`, `upstream` or `store`) and its threshold.
void read_subject(const TableReader& table, const Settings& settings, admin::AlertSettings& alert) {
  const int subjects = table.has("rule") + table.has("upstream") + table.has("store");
  if (subjects != 1) {
    if (!table.flawed())
      table.mistake("", subjects == 0
                            ? "found none of rule, upstream and store; expected one, such as rule = " +
                                  in_quotes(settings.rules.empty() ? "NAME" : settings.rules.front().name)
                            : "found " + std::to_string(subjects) +
                                  " of rule, upstream and store; expected exactly one");
    return;
  }
  const auto known = [&](std::string_view key, const auto& list) {
    alert.subject = table.text(key);
    for (const auto& each : list)
      if (each.name == alert.subject) return;
    table.mistake(key, "found " + in_quotes(alert.subject) + "; expected the name of " +
                           (key == "rule" ? "a rule" : "an upstream"));
  };
  if (table.has("rule")) {
    alert.on = admin::AlertOn::Refusals;
    known("rule", settings.rules);
    for (const auto& rule : settings.rules)
      if (rule.name == alert.subject && !rule.bandwidth.empty())
        table.mistake("rule", "found " + in_quotes(alert.subject) +
                                  ", which has bandwidth and refuses nothing; expected a rule with limit");
  } else if (table.has("upstream")) {
    alert.on = admin::AlertOn::Upstream;
    known("upstream", settings.upstreams);
  } else {
    alert.on = admin::AlertOn::Redis;
    alert.subject = table.text("store");
    const auto uses = [](const policy::Rule& rule) { return rule.store == policy::Store::Redis; };
    if (std::none_of(settings.rules.begin(), settings.rules.end(), uses))
      table.mistake(
          "store",
          "found \"redis\", but no rule is kept in Redis; expected a [[rule]] with store = \"redis\"");
  }
}

// Returns the name of the threshold that fits the alert.
const char* threshold_of(admin::AlertOn on) {
  if (on == admin::AlertOn::ClientRefusals) return "key_refused_above";
  return on == admin::AlertOn::Refusals ? "refused_above" : "failures_above";
}

limit::Rate read_threshold(const TableReader& table, admin::AlertOn on) {
  const char* const wanted = threshold_of(on);
  const bool of_rule = on == admin::AlertOn::Refusals || on == admin::AlertOn::ClientRefusals;
  bool other_found = false;
  for (const char* other : {"refused_above", "key_refused_above", "failures_above"}) {
    if (std::string_view(other) == wanted || !table.has(other)) continue;
    other_found = true;
    const bool two = on == admin::AlertOn::ClientRefusals && std::string_view(other) == "refused_above";
    table.mistake(other, two ? "found with key_refused_above; expected one of them: write another [[alert]]"
                             : std::string("found with ") + (of_rule ? "a rule" : "an upstream or a store") +
                                   "; expected " + wanted);
  }
  if (!other_found && !table.mentions(wanted) && !table.flawed())
    table.missing(wanted, "a rate such as \"100/min\"");
  const auto rate = table.rate(wanted).value_or(limit::Rate{});
  if (table.has(wanted) && rate.period < kShortestPeriod)
    table.mistake(wanted, "found a period below one second; expected at least 1s");
  return rate;
}

// If the table has key_refused_above, makes the alert watch each client of the rule separately.
void read_clients(const TableReader& table, const Settings& settings, admin::AlertSettings& alert) {
  alert.max_clients = static_cast<std::size_t>(table.whole("max_clients"));
  if (alert.on != admin::AlertOn::Refusals || !table.mentions("key_refused_above")) {
    if (table.has("max_clients"))
      table.mistake(
          "max_clients",
          "found without key_refused_above; remove it, or write key_refused_above instead of refused_above");
    return;
  }
  alert.on = admin::AlertOn::ClientRefusals;
  for (const auto& rule : settings.rules)
    if (rule.name == alert.subject && policy::names_nobody(rule.key))
      table.mistake("key_refused_above", "found with rule " + in_quotes(rule.name) +
                                             ", whose key is the same for all clients; expected "
                                             "refused_above");
}

limit::GcraCore read_posts(const TableReader& table) {
  const auto rate = table.rate("posts").value_or(limit::Rate{});
  const auto gcra_core = limit::GcraCore::make(rate, rate.count);
  if (gcra_core) return *gcra_core;
  table.mistake("posts", gcra_core.error().message);
  return *limit::GcraCore::make(limit::Rate{}, 1);
}

admin::AlertSettings read_alert(const TableReader& table, const Settings& settings,
                                const ReadContext& context) {
  admin::AlertSettings alert{
      .name = {}, .subject = {}, .surge = {}, .webhook = {}, .posts = read_posts(table)};
  read_subject(table, settings, alert);
  read_clients(table, settings, alert);
  if (!alert.subject.empty()) alert.surge.above = read_threshold(table, alert.on);
  alert.name = table.has("name") ? table.text("name") : alert.subject;
  if (table.has("name") && !is_plain_name(alert.name))
    table.mistake("name", "expected 1 to 128 printable ASCII characters, without \" and \\");
  alert.surge.lasting = table.duration("for");
  alert.surge.repeat = table.duration("repeat");
  read_webhook(table, context, alert.webhook);
  alert.attempts = static_cast<unsigned>(table.whole("attempts"));
  alert.timeout = table.deadline("timeout");
  if (alert.timeout > kLongestTimeout)
    table.mistake("timeout", "found more than 1min, during which other alerts wait; expected at most 1min");
  return alert;
}

}  // namespace

std::vector<admin::AlertSettings> read_alerts(const TableReader& root, const Settings& settings,
                                              ReadContext& context) {
  std::vector<admin::AlertSettings> alerts;
  for (const auto& table : root.tables("alert", schema::kAlert)) {
    auto alert = read_alert(table, settings, context);
    const auto same = [&](const admin::AlertSettings& other) { return other.name == alert.name; };
    if (!alert.name.empty() && std::any_of(alerts.begin(), alerts.end(), same))
      table.mistake("name", "found " + in_quotes(alert.name) + " a second time; expected a unique name");
    context.lines[name_of(alert)] = table.line();
    alerts.push_back(std::move(alert));
  }
  if (alerts.size() > kMostAlerts)
    root.mistake("alert", "found " + std::to_string(alerts.size()) + "; expected at most 100");
  return alerts;
}

}  // namespace weir::config
