// Reports differences that describe() does not show, because the values are secret or too long.
#include "weir/config/config_errors.hpp"
#include "weir/config/differences.hpp"
#include "weir/config/settings.hpp"

#include <algorithm>

namespace weir::config {

namespace {

// Returns true if both keys files have the same number of API keys but are different. describe() shows only
// the number.
bool differ_unshown(const policy::ClientSettings& before, const policy::ClientSettings& now) {
  return before.keys && now.keys && before.keys->size() == now.keys->size() && *before.keys != *now.keys;
}

bool have_other_keys(const policy::ClientSettings& before, const policy::ClientSettings& now) {
  if (!before.tokens || !now.tokens) return false;
  const auto old = before.tokens->settings(), fresh = now.tokens->settings();
  return !std::equal(old.begin(), old.end(), fresh.begin(), fresh.end(),
                     [](const policy::TokenSettings& a, const policy::TokenSettings& b) {
                       return a.key == b.key && a.jwks == b.jwks;
                     });
}

// Returns true if askers of the listener need another token than before. describe() shows only that there is
// a token.
bool asks_another_token(const net::ListenerSettings& listener,
                        const std::vector<net::ListenerSettings>& before) {
  return std::any_of(before.begin(), before.end(), [&](const net::ListenerSettings& old) {
    return old.address == listener.address && !old.ask.token.empty() && !listener.ask.token.empty() &&
           old.ask.token != listener.ask.token;
  });
}

// Returns true if an alert has the same server as before, but another path, authorization or CA. describe()
// shows only the server of an alert.
bool posts_elsewhere(const admin::AlertSettings& alert, const std::vector<admin::AlertSettings>& before) {
  return std::any_of(before.begin(), before.end(), [&](const admin::AlertSettings& old) {
    return old.name == alert.name && old.webhook.address == alert.webhook.address &&
           old.webhook.tls == alert.webhook.tls && !(old.webhook == alert.webhook);
  });
}

// Returns true if a route writes the same fields to its servers as before, but with other values. describe()
// does not show the values.
bool writes_otherwise(const policy::Route& route, const std::vector<policy::Route>& before) {
  const auto old = std::find_if(before.begin(), before.end(),
                                [&](const policy::Route& each) { return each.name == route.name; });
  if (old == before.end() || !old->edits || !route.edits) return false;
  const auto& was = old->edits->request.written;
  const auto& is = route.edits->request.written;
  if (was.size() != is.size()) return false;
  bool same = true;
  for (std::size_t i = 0; i < is.size(); ++i) {
    if (was[i].name != is[i].name || was[i].replaces != is[i].replaces) return false;
    same = same && was[i].value.describe() == is[i].value.describe();
  }
  return !same;
}

}  // namespace

std::vector<std::string> unshown_differences(const Settings& before, const Settings& now) {
  std::vector<std::string> differences;
  if (differ_unshown(before.client, now.client))
    differences.emplace_back("now: the keys file has other keys, or says other things of them");
  if (have_other_keys(before.client, now.client))
    differences.emplace_back("now: tokens are verified with other keys");
  if (before.acme && now.acme && before.acme->external_account && now.acme->external_account &&
      before.acme->external_account->hmac_key != now.acme->external_account->hmac_key)
    differences.emplace_back("now: [acme] has another hmac_key");
  for (const auto& listener : now.listeners)
    if (asks_another_token(listener, before.listeners))
      differences.push_back("now: listener " + listener.address.to_string() + " has another token");
  for (const auto& alert : now.alerts)
    if (posts_elsewhere(alert, before.alerts))
      differences.push_back("now: alert " + in_quotes(alert.name) + " has another path, authorization or ca");
  for (const auto& route : now.routes)
    if (writes_otherwise(route, before.routes))
      differences.push_back("now: route " + in_quotes(route.name) +
                            " sends its servers other values in header fields");
  return differences;
}

}  // namespace weir::config
