// Warns of rules whose key probably does not distinguish clients as intended.
#include "config/warn/config_warnings.hpp"
#include "config/warn/overlap.hpp"

#include "weir/http/head.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace weir::config {

namespace {

using policy::Attribute;

// Returns true if every request has the attribute. Then weir never uses the alternatives that follow the
// attribute in a part of a key.
bool is_of_every(const policy::AttributeRef& attribute) {
  constexpr Attribute kOfEvery[] = {Attribute::Ip, Attribute::Method, Attribute::Path};
  return std::find(std::begin(kOfEvery), std::end(kOfEvery), attribute.kind) != std::end(kOfEvery);
}

bool takes_api_key(const policy::KeyPart& part) {
  for (const auto& attribute : part) {
    if (attribute.kind == Attribute::ApiKey) return true;
    if (is_of_every(attribute)) break;
  }
  return false;
}

// Returns true if a part of the rule's key is the API key, so that each invented API key gets its own
// counter.
bool rests_on_api_key(const policy::Rule& rule) {
  return std::any_of(rule.key.begin(), rule.key.end(), takes_api_key);
}

// Returns true if weir accepts API keys that the keys file does not contain.
bool can_invent_keys(const policy::ClientSettings& client) {
  return !client.keys || client.unknown_keys == policy::UnknownKeys::Accept;
}

std::string text_of(const policy::KeyPart& part) {
  std::string text;
  for (const auto& attribute : part) text += (text.empty() ? "" : "|") + policy::describe(attribute);
  return in_quotes(text);
}

// Returns true if clients can choose or invent the attribute's value. Returns false for Route and Upstream,
// because the number of their values is bounded.
bool is_chosen(Attribute attribute) {
  constexpr Attribute kChosen[] = {
      Attribute::Header, Attribute::Query, Attribute::Cookie, Attribute::Path, Attribute::Device,
      Attribute::Method, Attribute::Host,  Attribute::Json,   Attribute::Form, Attribute::PathSegment};
  return std::find(std::begin(kChosen), std::end(kChosen), attribute) != std::end(kChosen);
}

// Suggests a replacement for a part of a key that has unused alternatives, such as "user|ip" for "ip|user".
// The suggestion begins with the alternatives that some requests lack and clients cannot choose. It ends with
// one of the other alternatives: Ip if the part has Ip. If all alternatives are of the other kind, suggests
// to make each alternative a part of its own.
std::string suggested_part(const policy::KeyPart& part) {
  policy::KeyPart first, last;
  for (const auto& attribute : part)
    (is_of_every(attribute) || is_chosen(attribute.kind) ? last : first).push_back(attribute);
  const auto ip = std::find_if(last.begin(), last.end(), [](const policy::AttributeRef& attribute) {
    return attribute.kind == Attribute::Ip;
  });
  if (first.empty()) {
    std::string both;
    for (const auto& attribute : last) both += (both.empty() ? "" : ", ") + text_of({attribute});
    return "[" + both + "], which counts all clients together";
  }
  first.push_back(ip != last.end() ? *ip : last.front());
  return text_of(first);
}

// Warns of alternatives in a part of a key that are never used: an attribute that every request has precedes
// them, as in "ip|user".
void warn_of_fallbacks(const policy::Rule& rule, ConfigWarnings& warnings) {
  for (const auto& part : rule.key) {
    const auto present = std::find_if(part.begin(), part.end(), is_of_every);
    if (part.end() - present < 2) continue;
    warnings.add(rule, "is keyed by " + text_of(part) + ", and every request has " +
                           (present->kind == Attribute::Ip ? "an " : "a ") + policy::describe(*present) +
                           ": " + text_of({present + 1, part.end()}) + " is never used; did you mean " +
                           suggested_part(part) + "?");
  }
}

// Warns of parts of a key that repeat another part, and therefore separate no clients.
void warn_of_repeated_parts(const policy::Rule& rule, ConfigWarnings& warnings) {
  for (auto part = rule.key.begin(); part != rule.key.end(); ++part)
    if (std::find(rule.key.begin(), part, *part) != part)
      warnings.add(rule, "has " + text_of(*part) +
                             " more than once in its key: the repetition separates no clients; remove it, "
                             "or write another attribute in its place");
}

// Returns true if a condition allows only one value for the header or parameter `name`.
bool is_exact(const std::vector<policy::NamedText>& conditions, std::string_view name, bool with_case) {
  return std::any_of(conditions.begin(), conditions.end(), [&](const policy::NamedText& condition) {
    const auto text = condition.text.describe();
    const bool same = with_case ? condition.name == name : http::equal_ignoring_case(condition.name, name);
    return same && text != "present" && !text.starts_with('~');
  });
}

// Returns true if the conditions of the match limit the number of values that the attribute can have.
bool is_bound_by_match(const policy::AttributeRef& ref, const policy::Match& match) {
  switch (ref.kind) {
    case Attribute::Method:
      return !match.methods.empty();
    case Attribute::Host:
      return !match.hosts.empty() && std::all_of(match.hosts.begin(), match.hosts.end(),
                                                 [](const auto& host) { return host.is_exact(); });
    case Attribute::Path:
    case Attribute::PathSegment: {
      const auto path = match.path ? match.path->describe() : "~";
      return !path.starts_with('~') && !path.ends_with('*');
    }
    case Attribute::Header:
      return is_exact(match.headers, ref.name, false);
    case Attribute::Query:
      return is_exact(match.query, ref.name, true);
    case Attribute::Json:
      return is_exact(match.json, ref.name, true);
    default:
      return false;
  }
}

// Returns true if a client can get a new counter by inventing a value for this part of the key.
bool is_chosen_part(const policy::KeyPart& part, const policy::Rule& rule) {
  const auto last = std::find_if(part.begin(), part.end(), is_of_every);
  const auto looked_at = last == part.end() ? last : last + 1;
  return std::any_of(part.begin(), looked_at, [&](const policy::AttributeRef& ref) {
    return is_chosen(ref.kind) && !is_bound_by_match(ref, rule.match);
  });
}

// Returns the first part of the rule's key for which clients can invent values; null if there is none.
const policy::KeyPart* chosen_part(const policy::Rule& rule) {
  const auto is_one = [&](const policy::KeyPart& part) { return is_chosen_part(part, rule); };
  const auto found = std::find_if(rule.key.begin(), rule.key.end(), is_one);
  return found != rule.key.end() ? &*found : nullptr;
}

// Returns true if the rule also applies to clients whose requests lack a part of its key.
bool applies_to_all(const policy::Rule& rule) {
  return rule.on_missing != policy::OnMissing::Skip ||
         std::all_of(rule.key.begin(), rule.key.end(), [](const policy::KeyPart& part) {
           return std::any_of(part.begin(), part.end(), is_of_every);
         });
}

// Returns true if `other` limits every request that `rule` matches, and no client can avoid `other`.
bool is_bounded_by(const policy::Rule& rule, const policy::Rule& other, const Settings& settings) {
  // A limit of concurrent requests (limit::holds) does not bound the number of requests in an hour.
  if (limit::holds(other.limiter) && !limit::holds(rule.limiter)) return false;
  return other.mode == policy::Mode::Enforce && chosen_part(other) == nullptr && applies_to_all(other) &&
         !has_chosen_override(other) && !(can_invent_keys(settings.client) && rests_on_api_key(other)) &&
         plainly_covers(other.match, rule.match);
}

bool is_bounded(const policy::Rule& rule, const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(),
                     [&](const policy::Rule& other) { return is_bounded_by(rule, other, settings); });
}

// Returns true if the rule counts clients, or at least clients without credentials, by their addresses.
bool counts_addresses(const policy::Rule& rule) {
  const auto falls_back_on_ip = [](const policy::KeyPart& part) {
    return std::any_of(part.begin(), part.end(),
                       [](const policy::AttributeRef& ref) { return ref.kind == Attribute::Ip; });
  };
  return rule.on_missing == policy::OnMissing::Ip ||
         std::any_of(rule.key.begin(), rule.key.end(), falls_back_on_ip);
}

void warn_of_invented_keys(const Settings& settings, ConfigWarnings& warnings) {
  const auto& client = settings.client;
  if (!can_invent_keys(client)) return;
  for (const auto& rule : settings.rules)
    if (rests_on_api_key(rule) && !is_bounded_by_address(rule, settings))
      warnings.add(rule,
                   std::string("counts clients by API key, but ") +
                       (client.keys ? "unknown_keys = \"accept\" accepts unknown ones"
                                    : "no [client] keys file says which keys exist") +
                       ": a client that invents keys gets a new limit with each; write key = [\"ip\"], " +
                       (client.keys ? "remove unknown_keys" : "name the keys in a [client] keys file") +
                       ", or add a rule for the same requests with key = [\"ip\"]");
}

void warn_of_chosen_keys(const Settings& settings, ConfigWarnings& warnings) {
  for (const auto& rule : settings.rules) {
    const auto* part = chosen_part(rule);
    if (part != nullptr && !is_bounded(rule, settings))
      warnings.add(rule, "is keyed by " + text_of(*part) +
                             ", which clients can choose freely: each invented value gets a new limit; add a "
                             "rule for the same requests with key = [\"ip\"]");
  }
}

// Returns true if every listener requires a client certificate.
bool certificates_are_required(const Settings& settings) {
  return std::all_of(settings.listeners.begin(), settings.listeners.end(),
                     [](const net::ListenerSettings& listener) {
                       return listener.tls && !listener.tls->client_ca.empty() &&
                              listener.tls->client_auth == net::ClientAuth::Require;
                     });
}

bool names(const std::vector<policy::NamedText>& conditions, std::string_view name) {
  return std::any_of(conditions.begin(), conditions.end(), [&](const policy::NamedText& condition) {
    return http::equal_ignoring_case(condition.name, name);
  });
}

bool is_named(const std::vector<policy::NamedText>& conditions, std::string_view name) {
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const policy::NamedText& condition) { return condition.name == name; });
}

// Returns true if the conditions of the match require the header or query parameter that `source` names.
bool asks_for(const policy::Match& match, const policy::Source& source) {
  return (source.kind == policy::Source::Kind::Header && names(match.headers, source.name)) ||
         (source.kind == policy::Source::Kind::Query && names(match.query, source.name));
}

// Returns true if a client can send a request that meets the match but lacks the attribute.
bool can_be_left_out(const policy::AttributeRef& ref, const policy::Match& match, const Settings& settings) {
  switch (ref.kind) {
    case Attribute::ApiKey:
      return match.tiers.empty() && !asks_for(match, settings.client.api_key);
    case Attribute::Device:
      return !asks_for(match, settings.client.device);
    case Attribute::User:
    case Attribute::Org:
    case Attribute::Service:
    case Attribute::Cookie:
    case Attribute::Claim:
      return true;
    case Attribute::Tier:
      return match.tiers.empty();
    case Attribute::Host:  // an HTTP/1.0 request may have no Host field
      return match.hosts.empty();
    case Attribute::Header:
      return !names(match.headers, ref.name);
    case Attribute::Query:
      return !names(match.query, ref.name);
    case Attribute::Json:
      return !is_named(match.json, ref.name);
    case Attribute::Form:
    case Attribute::PathSegment:
      return true;
    case Attribute::CertSubject:
      return !certificates_are_required(settings);
    default:
      return false;
  }
}

// Returns the first part of the rule's key that a client can omit to avoid the rule; null if there is none.
const policy::KeyPart* part_left_out(const policy::Rule& rule, const Settings& settings) {
  if (rule.on_missing != policy::OnMissing::Skip) return nullptr;
  const auto found = std::find_if(rule.key.begin(), rule.key.end(), [&](const policy::KeyPart& part) {
    return std::all_of(part.begin(), part.end(), [&](const policy::AttributeRef& ref) {
      return can_be_left_out(ref, rule.match, settings);
    });
  });
  return found != rule.key.end() ? &*found : nullptr;
}

// Returns advice on how to write the part so that no client can omit it: "write …, or ". Returns an empty
// text if clients can invent values for the part, because they can then avoid the rule without omitting the
// part.
std::string remedy_for(const policy::KeyPart& part, const policy::Rule& rule) {
  if (is_chosen_part(part, rule)) return {};
  auto with_ip = part;
  with_ip.push_back({Attribute::Ip, {}});
  return "write " + text_of(with_ip) + ", on_missing = \"ip\" or \"reject\", or ";
}

void warn_of_left_out_keys(const Settings& settings, ConfigWarnings& warnings) {
  for (const auto& rule : settings.rules) {
    const auto* part = part_left_out(rule, settings);
    if (part == nullptr || is_bounded_by_address(rule, settings)) continue;
    warnings.add(
        rule,
        "is keyed by " + text_of(*part) +
            ", but does not apply to requests without it: a client that leaves it out avoids the rule; " +
            remedy_for(*part, rule) + "add a rule for the same requests with key = [\"ip\"]");
  }
}

bool can_be_known(Attribute attribute, const policy::ClientSettings& client) {
  const auto told = [](const policy::Source& source) { return source.kind != policy::Source::Kind::None; };
  switch (attribute) {
    case Attribute::User:
      return told(client.user) || client.keys;
    case Attribute::Org:
      return told(client.org) || client.keys;
    case Attribute::Service:
      return told(client.service) || client.keys;
    case Attribute::Tier:
      return client.keys.has_value();
    case Attribute::Device:
      return told(client.device);
    case Attribute::Country:
      return !client.geo || client.geo->contents().countries;
    case Attribute::City:
    case Attribute::Region:
      return !client.geo || client.geo->contents().cities;
    case Attribute::Asn:
      return !client.geo || client.geo->contents().asns;
    default:
      return true;
  }
}

void warn_of_key(const policy::Rule& rule, const policy::ClientSettings& client, ConfigWarnings& warnings) {
  const auto is_place = [](const policy::AttributeRef& ref) {
    return ref.kind == Attribute::Country || ref.kind == Attribute::City || ref.kind == Attribute::Region ||
           ref.kind == Attribute::Asn;
  };
  for (const auto& part : rule.key)
    if (std::none_of(part.begin(), part.end(),
                     [&](const policy::AttributeRef& ref) { return can_be_known(ref.kind, client); }))
      warnings.add(rule, "is keyed by " + text_of(part) + ", which no request has: " +
                             (client.geo && std::any_of(part.begin(), part.end(), is_place)
                                  ? "no database of [client] geo (" + client.geo->names() + ") knows it"
                                  : "[client] does not say where to read it"));
}

}  // namespace

bool is_bounded_by_address(const policy::Rule& rule, const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(), [&](const policy::Rule& other) {
    return &other != &rule && counts_addresses(other) && is_bounded_by(rule, other, settings);
  });
}

void warn_of_keys(const Settings& settings, ConfigWarnings& warnings) {
  warn_of_invented_keys(settings, warnings);
  warn_of_left_out_keys(settings, warnings);
  warn_of_chosen_keys(settings, warnings);
  for (const auto& rule : settings.rules) {
    warn_of_key(rule, settings.client, warnings);
    warn_of_fallbacks(rule, warnings);
    warn_of_repeated_parts(rule, warnings);
  }
}

}  // namespace weir::config
