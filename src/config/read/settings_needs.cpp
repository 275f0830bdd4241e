// Determines which facts about requests the configuration uses. weir does not look up other facts.
#include "config/read/settings_sections.hpp"

#include <algorithm>

namespace weir::config {

namespace {

bool has(const policy::KeyPattern& pattern, policy::Attribute kind) {
  return std::any_of(pattern.begin(), pattern.end(), [&](const policy::KeyPart& part) {
    return std::any_of(part.begin(), part.end(),
                       [&](const policy::AttributeRef& attribute) { return attribute.kind == kind; });
  });
}

bool names_places(const policy::Match& match) {
  return !match.countries.empty() || !match.cities.empty() || !match.regions.empty() || !match.asns.empty() ||
         (match.negated && names_places(*match.negated));
}

bool names_places(const policy::Rule& rule) {
  return names_places(rule.match) ||
         std::any_of(rule.overrides.begin(), rule.overrides.end(),
                     [](const policy::Variant& variant) { return names_places(variant.match); });
}

bool names_claims(const policy::Match& match) {
  return !match.claims.empty() || (match.negated && names_claims(*match.negated));
}

}  // namespace

bool names_claims(const policy::Rule& rule) {
  return names_claims(rule.match) ||
         std::any_of(rule.overrides.begin(), rule.overrides.end(),
                     [](const policy::Variant& variant) { return names_claims(variant.match); });
}

bool keyed_by(const Settings& settings, policy::Attribute kind) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [&](const policy::Rule& rule) { return has(rule.key, kind); }) ||
         std::any_of(
             settings.upstreams.begin(), settings.upstreams.end(),
             [&](const upstream::UpstreamSettings& upstream) { return has(upstream.hash_key, kind); });
}

bool asks_for_bodies(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.max_body != 0; });
}

bool asks_for_claims(const Settings& settings) {
  const auto& client = settings.client;
  const policy::Source* sources[] = {&client.api_key, &client.user,   &client.org,
                                     &client.service, &client.device, &client.tier};
  const auto claimed = [](const policy::Source* source) {
    return source->kind == policy::Source::Kind::Claim;
  };
  return std::any_of(std::begin(sources), std::end(sources), claimed) ||
         keyed_by(settings, policy::Attribute::Claim) ||
         std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return names_claims(rule); });
}

bool asks_for_places(const Settings& settings) {
  const auto by_rule = [](const policy::Rule& rule) { return names_places(rule); };
  const auto by_route = [](const policy::Route& route) { return names_places(route.match); };
  using policy::Attribute;
  const auto keyed = [&](Attribute kind) { return keyed_by(settings, kind); };
  return keyed(Attribute::Country) || keyed(Attribute::City) || keyed(Attribute::Region) ||
         keyed(Attribute::Asn) || std::any_of(settings.rules.begin(), settings.rules.end(), by_rule) ||
         std::any_of(settings.routes.begin(), settings.routes.end(), by_route);
}

bool is_elastic(const policy::Rule& rule) {
  const auto elastic = [](const policy::Variant& variant) { return variant.elastic.has_value(); };
  return rule.elastic || std::any_of(rule.tiers.begin(), rule.tiers.end(), elastic) ||
         std::any_of(rule.overrides.begin(), rule.overrides.end(), elastic);
}

bool asks_for_answers(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [](const policy::Rule& rule) { return rule.settlement.has_value(); });
}

bool asks_for_certificates(const Settings& settings) {
  using policy::Placeholder;
  const auto asks = [](const policy::FieldEdits& edits) {
    return std::any_of(edits.written.begin(), edits.written.end(), [](const policy::EditedField& field) {
      return field.value.has(Placeholder::CertDer);
    });
  };
  return std::any_of(settings.routes.begin(), settings.routes.end(), [&](const policy::Route& route) {
    if (route.edits && (asks(route.edits->request) || asks(route.edits->response))) return true;
    if (!route.respond) return false;
    const auto& location = route.respond->location;
    return asks(route.respond->fields) || (location && location->has(Placeholder::CertDer));
  });
}

bool asks_for_load(const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(), is_elastic);
}

}  // namespace weir::config
