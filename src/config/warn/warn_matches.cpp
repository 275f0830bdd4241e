// Warns of conditions that are probably mistakes. These are overrides that a client can choose, regular
// expressions with a character that no path contains, conditions that exclude each other, and geographic
// places that no database knows.
#include "config/warn/capacity.hpp"
#include "config/warn/config_warnings.hpp"
#include "config/warn/overlap.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace weir::config {

namespace {

// Returns how many units per second a limiter admits in the long run; 0 for a limit of concurrent requests.
double units_per_second(const limit::Limiter& limiter) {
  const auto of = [](const limit::Rate& rate) {
    return static_cast<double>(rate.count) * 1e6 / static_cast<double>(rate.period.count());
  };
  if (const auto* gcra_core = limit::gcra_core(limiter)) return of(gcra_core->rate());
  return std::visit(
      [&](const auto& algorithm) {
        if constexpr (requires { algorithm.rate(); })
          return of(algorithm.rate());
        else
          return 0.0;
      },
      limiter);
}

// Returns true if the override admits more than the rule's own limit, at once or in the long run.
bool admits_more(const policy::Variant& variant, const policy::Rule& rule) {
  return most_at_once(*variant.limiter) > most_at_once(*rule.limiter) ||
         units_per_second(*variant.limiter) > units_per_second(*rule.limiter);
}

// Returns true if a client can decide whether its requests meet the match. The match then has conditions on
// headers, query parameters or members of JSON. It has none on the client's address, tier, claims or
// geographic place, and none on what the asker of a question says.
bool is_chosen_by_client(const policy::Match& match) {
  const bool reads_client = !match.ip.empty() || !match.tiers.empty() || !match.claims.empty() ||
                            !match.countries.empty() || !match.cities.empty() || !match.regions.empty() ||
                            !match.asns.empty() || !match.descriptor.empty() || !match.domains.empty();
  const auto names_text = [](const policy::Match& one) {
    return !one.headers.empty() || !one.query.empty() || !one.json.empty();
  };
  return !reads_client && (names_text(match) || (match.negated && names_text(*match.negated)));
}

const policy::Variant* chosen_override(const policy::Rule& rule) {
  const auto found =
      std::find_if(rule.overrides.begin(), rule.overrides.end(), [&](const policy::Variant& variant) {
        return is_chosen_by_client(variant.match) && admits_more(variant, rule);
      });
  return found != rule.overrides.end() ? &*found : nullptr;
}

// Returns the first of the characters ; # ? that the expression requires although weir cuts them off before
// rules compare the path. Returns '\0' if there is none. Ignores characters in classes such as [^;]. Returns
// '\0' for expressions with alternatives, groups, quoted texts or named classes, because not every character
// in them is required.
char never_in_paths(std::string_view expression) {
  constexpr std::string_view kCutOff = ";#?";
  constexpr std::string_view kOptional = "?*{";
  for (const std::string_view unclear : {"|", "(", "\\Q", "[:"})
    if (expression.find(unclear) != std::string_view::npos) return '\0';
  const auto is_needed = [&](std::size_t at) {
    return at + 1 >= expression.size() || kOptional.find(expression[at + 1]) == std::string_view::npos;
  };
  for (std::size_t at = 0; at < expression.size(); ++at) {
    const char c = expression[at];
    if (c == '[') {
      // In the class "[]a]", the first ']' is a member of the class.
      const auto first = at + (expression.substr(at + 1).starts_with('^') ? 3 : 2);
      at = std::min(expression.find(']', std::min(first, expression.size())), expression.size());
    } else if (c == '\\') {
      ++at;
      if (at < expression.size() && kCutOff.find(expression[at]) != std::string_view::npos && is_needed(at))
        return expression[at];
    } else if ((c == ';' || c == '#') && is_needed(at)) {
      return c;
    }
  }
  return '\0';
}

template <class Named>
void warn_of_path(const Named& named, const policy::Match& match, ConfigWarnings& warnings) {
  if (match.negated) warn_of_path(named, *match.negated, warnings);
  if (!match.path) return;
  const auto path = match.path->describe();
  if (!path.starts_with('~')) return;
  const char never = never_in_paths(std::string_view(path).substr(1));
  if (never != '\0')
    warnings.add(named,
                 "has the path " + in_quotes(path) + ", and no path has a " + in_quotes({&never, 1}) +
                     ": parameters behind \";\", the query and the fragment are cut off before paths are "
                     "compared; write the path without them" +
                     (never == '?' ? ", and the query as match.query" : ""));
}

// Warns of conditions that never hold, because no database of [client] geo knows the place.
template <class Named>
void warn_of_places(const Named& named, const policy::Match& match, const policy::ClientSettings& client,
                    ConfigWarnings& warnings) {
  if (match.negated) warn_of_places(named, *match.negated, client, warnings);
  if (!client.geo) return;
  const auto known = client.geo->contents();
  const std::pair<const char*, bool> unknown[] = {{"country", !match.countries.empty() && !known.countries},
                                                  {"city", !match.cities.empty() && !known.cities},
                                                  {"region", !match.regions.empty() && !known.cities},
                                                  {"asn", !match.asns.empty() && !known.asns}};
  for (const auto& [place, missing] : unknown)
    if (missing)
      warnings.add(named, std::string("has the condition ") + place +
                              ", which never holds: no database of [client] geo (" + client.geo->names() +
                              ") knows it; add a file to geo");
}

// Warns of a match that no request can meet, because `not` excludes all requests that meet its conditions.
template <class Named>
void warn_of_contradiction(const Named& named, const policy::Match& match, ConfigWarnings& warnings) {
  if (match.negated && plainly_covers(*match.negated, match))
    warnings.add(named, "has the conditions " + match.describe() +
                            ", which no request meets: `not` excludes all that the others admit");
}

}  // namespace

bool has_chosen_override(const policy::Rule& rule) {
  return chosen_override(rule) != nullptr;
}

void warn_of_matches(const Settings& settings, ConfigWarnings& warnings) {
  const auto warn = [&](const auto& named, const policy::Match& match) {
    warn_of_path(named, match, warnings);
    warn_of_contradiction(named, match, warnings);
    warn_of_places(named, match, settings.client, warnings);
  };
  for (const auto& route : settings.routes) warn(route, route.match);
  for (const auto& rule : settings.rules) {
    warn(rule, rule.match);
    for (const auto& variant : rule.overrides) warn(rule, variant.match);
    const auto* chosen = chosen_override(rule);
    if (chosen != nullptr && !is_bounded_by_address(rule, settings))
      warnings.add(rule,
                   "has an override for " + chosen->match.describe() +
                       ", which clients choose, and it admits more: any client gets it by "
                       "writing that; use tier or ip in its match, or add a rule for the same requests with "
                       "key = [\"ip\"]");
  }
}

}  // namespace weir::config
