// What a configuration may say and its writer probably does not mean: the warnings of `weir check`.
#include "app/overlap.hpp"
#include "app/settings_sections.hpp"

#include <algorithm>
#include <iterator>

namespace weir::app {

namespace {

using policy::Attribute;
using Doubts = std::vector<std::string>;

std::string of_rule(const policy::Rule& rule) {
  return "rule " + in_quotes(rule.name) + " ";
}

// Of the alternatives behind one that every request has none is looked at.
bool takes_api_key(const policy::KeyPart& part) {
  constexpr Attribute kOfEvery[] = {Attribute::Ip, Attribute::Method, Attribute::Path};
  for (const auto& attribute : part) {
    if (attribute.kind == Attribute::ApiKey) return true;
    if (std::find(std::begin(kOfEvery), std::end(kOfEvery), attribute.kind) != std::end(kOfEvery)) break;
  }
  return false;
}

// Whether a client that invents an API key gets a state of its own: whatever the other parts of the key are.
bool rests_on_api_key(const policy::Rule& rule) {
  return std::any_of(rule.key.begin(), rule.key.end(), takes_api_key);
}

void doubt_invented_keys(const Settings& settings, Doubts& doubts) {
  const auto& client = settings.client;
  if (client.keys && client.unknown_keys != policy::UnknownKeys::Accept) return;
  for (const auto& rule : settings.rules)
    if (rests_on_api_key(rule))
      doubts.push_back(
          of_rule(rule) + "tells clients apart by API keys, and " +
          (client.keys ? "unknown ones are accepted" : "no [client] keys file says which exist") +
          ": who invents keys gets a fresh limit with each");
}

void doubt_secret(const Settings& settings, Doubts& doubts) {
  const bool shared = std::any_of(settings.rules.begin(), settings.rules.end(), [](const policy::Rule& rule) {
    return rule.store == policy::Store::Redis;
  });
  if (shared && settings.state.key_secret.empty())
    doubts.push_back(
        "[state] key_secret is missing: weirs that share the Redis, and this one after a restart, will not "
        "agree on the names of clients there");
  if (!shared && settings.state.redis)
    doubts.push_back("[state] redis is configured, and no rule keeps its state there");
}

void doubt_redis_tls(const Settings& settings, Doubts& doubts) {
  const auto& redis = settings.state.redis;
  if (redis && redis->tls && !redis->tls->verify)
    doubts.push_back(
        "[state.redis] tls: with verify = false whoever sits between weir and Redis may be Redis");
}

void collect_tiers(const policy::Match& match, std::set<std::string>& tiers) {
  tiers.insert(match.tiers.begin(), match.tiers.end());
  if (match.negated) collect_tiers(*match.negated, tiers);
}

void doubt_tiers(const Settings& settings, const Reading& reading, Doubts& doubts) {
  const auto check = [&](const std::string& whose, const std::set<std::string>& tiers) {
    for (const auto& tier : tiers)
      if (!reading.tiers.contains(tier))
        doubts.push_back(whose + "names the tier " + in_quotes(tier) + ", which " +
                         (settings.client.keys ? "no key of the keys file has"
                                               : "nobody has without a [client] keys file"));
  };
  for (const auto& rule : settings.rules) {
    std::set<std::string> tiers;
    collect_tiers(rule.match, tiers);
    for (const auto& variant : rule.tiers) tiers.insert(variant.tier);
    for (const auto& variant : rule.overrides) collect_tiers(variant.match, tiers);
    check(of_rule(rule), tiers);
  }
  for (const auto& route : settings.routes) {
    std::set<std::string> tiers;
    collect_tiers(route.match, tiers);
    check("route " + in_quotes(route.name) + " ", tiers);
  }
}

void doubt_routes(const Settings& settings, Doubts& doubts) {
  const policy::Route* everything = nullptr;
  for (const auto& route : settings.routes) {
    if (everything != nullptr)
      doubts.push_back("route " + in_quotes(route.name) + " is never reached: " +
                       in_quotes(everything->name) + " before it takes every request");
    else if (is_everything(route.match))
      everything = &route;
  }
  for (std::size_t i = 0; i < settings.upstreams.size(); ++i)
    if (std::none_of(settings.routes.begin(), settings.routes.end(),
                     [&](const policy::Route& route) { return !route.respond && route.upstream == i; }))
      doubts.push_back("upstream " + in_quotes(settings.upstreams[i].name) + " is used by no route");
}

void doubt_rules(const Settings& settings, Doubts& doubts) {
  for (const auto& rule : settings.rules)
    if (std::all_of(settings.routes.begin(), settings.routes.end(),
                    [&](const policy::Route& route) { return plainly_disjoint(route.match, rule.match); }))
      doubts.push_back(of_rule(rule) + "applies to no route: its host, methods or path are of none");
}

// The costliest request that an idle one admits. A queue admits one more than it holds: what departs at once
// takes none of its places.
std::uint64_t most_at_once(const limit::Limiter& limiter) {
  const auto* spacing = limit::spacing(limiter);
  return spacing != nullptr ? spacing->capacity() : limit::quota(limiter);
}

// `numbers`: the rule or a variant of it; `whose`: for which requests they stand.
template <class Numbers>
void doubt_cost(const policy::Rule& rule, const Numbers& numbers, const std::string& whose, Doubts& doubts) {
  auto most = most_at_once(numbers.limiter);
  if (numbers.soft) most = std::max(most, most_at_once(*numbers.soft));
  if (numbers.elastic) most = std::max(most, most_at_once(numbers.elastic->limiter));
  if (rule.cost <= most) return;
  const bool told = rule.cost_from.kind != policy::CostSource::Kind::None;
  doubts.push_back(of_rule(rule) + "admits " + (told ? "no request that does not say its cost" : "nothing") +
                   whose + ": " + (told ? "it" : "a request") + " costs " + std::to_string(rule.cost) +
                   ", and at most " + std::to_string(most) + " can be spent at once");
}

void doubt_costs(const policy::Rule& rule, Doubts& doubts) {
  const bool varied = !rule.tiers.empty() || !rule.overrides.empty();
  doubt_cost(rule, rule, varied ? " beside its tiers and overrides" : "", doubts);
  for (const auto& variant : rule.overrides)
    doubt_cost(rule, variant, " by its override for " + variant.match.describe(), doubts);
  for (const auto& variant : rule.tiers)
    doubt_cost(rule, variant, " of the tier " + in_quotes(variant.tier), doubts);
}

// Whether clients wait in one queue together: no part of its key is one client's own.
bool is_shared_queue(const policy::Rule& rule) {
  constexpr Attribute kOfMany[] = {Attribute::Route, Attribute::Host,    Attribute::Method,
                                   Attribute::Path,  Attribute::Country, Attribute::Tier};
  const auto of_many = [&](const policy::AttributeRef& ref) {
    return std::find(std::begin(kOfMany), std::end(kOfMany), ref.kind) != std::end(kOfMany);
  };
  return std::holds_alternative<limit::LeakyBucket>(*rule.limiter) &&
         std::all_of(rule.key.begin(), rule.key.end(), [&](const policy::KeyPart& part) {
           return std::all_of(part.begin(), part.end(), of_many);
         });
}

// A full queue gives a place of a client with many to one with fewer, but not where Redis is asked as well.
void doubt_queues(const Settings& settings, Doubts& doubts) {
  const bool asks_redis = std::any_of(settings.rules.begin(), settings.rules.end(),
                                      [](const auto& rule) { return rule.store == policy::Store::Redis; });
  if (!asks_redis) return;
  for (const auto& rule : settings.rules)
    if (is_shared_queue(rule) && rule.queue_per_client == policy::kNoBound)
      doubts.push_back(
          of_rule(rule) +
          "is a queue that clients share, without queue_per_client: one of them may take all its "
          "places, for where Redis is asked none is given to another");
}

// Whether the head of a request says nothing of whether its body is read.
bool reads_every_body(const policy::Rule& rule) {
  auto head = rule.match;
  head.body_words.clear();
  if (head.negated && head.negated->max_body != 0) head.negated.reset();
  const bool some_only = std::any_of(rule.overrides.begin(), rule.overrides.end(),
                                     [](const auto& variant) { return variant.match.max_body != 0; });
  return rule.max_body != 0 && is_everything(head) && !some_only;
}

void doubt_bodies(const policy::Rule& rule, Doubts& doubts) {
  if (reads_every_body(rule))
    doubts.push_back(
        of_rule(rule) +
        "reads every request's body into memory, and refuses those that are longer than its "
        "max_body (413) or compressed (415): match.path or match.methods would spare the others");
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
    default:
      return true;
  }
}

void doubt_key(const policy::Rule& rule, const policy::ClientSettings& client, Doubts& doubts) {
  for (const auto& part : rule.key)
    if (std::none_of(part.begin(), part.end(),
                     [&](const policy::AttributeRef& ref) { return can_be_known(ref.kind, client); }))
      doubts.push_back(of_rule(rule) + "is keyed by " + in_quotes(policy::describe({part})) +
                       ", which no request has: [client] does not say where it is found");
}

void doubt_sources(const Settings& settings, Doubts& doubts) {
  const auto& client = settings.client;
  if (!client.keys && client.unknown_keys != policy::UnknownKeys::Anonymous)
    doubts.push_back("[client] unknown_keys says nothing without a keys file beside it");
  if (client.tokens && !asks_for_claims(settings))
    doubts.push_back("[client] jwt is configured, and nothing asks for a claim");
  if (client.countries && !asks_for_countries(settings))
    doubts.push_back("[client] geo is configured, and nothing asks for a country");
  if (!client.trusted_proxies.empty()) return;
  const std::pair<std::string_view, const policy::Source*> sources[] = {
      {"user", &client.user}, {"org", &client.org}, {"service", &client.service}};
  for (const auto& [name, source] : sources)
    if (source->kind != policy::Source::Kind::None && source->kind != policy::Source::Kind::Claim)
      doubts.push_back("[client] " + std::string(name) +
                       " is believed from trusted proxies alone, and trusted_proxies names none");
}

void doubt_trust(const Settings& settings, Doubts& doubts) {
  const auto& trusted = settings.client.trusted_proxies;
  const auto takes = [&](const base::IpAddress& one, const base::IpAddress& other) {
    return std::any_of(trusted.begin(), trusted.end(),
                       [&](const auto& block) { return block.contains(one) && block.contains(other); });
  };
  const auto v4 = [](std::uint32_t octets) { return base::IpAddress::v4(octets); };
  if (takes(v4(0), v4(0xffffffff)))
    doubts.push_back(
        "[client] trusted_proxies takes every address for a proxy of yours: whoever connects says himself "
        "who he is");
}

// Who connects by a unix socket has no address: as a client it is "::".
void doubt_peers(const Settings& settings, Doubts& doubts) {
  const auto& client = settings.client;
  for (const auto& listener : settings.listeners) {
    const auto whose = "listener " + listener.address.to_string() + " ";
    if (listener.address.is_unix() && !policy::is_trusted(client, {}))
      doubts.push_back(whose +
                       "has peers without addresses, whom nobody trusts: all of them are one client, \"::\"; "
                       "name \"unix:\" in [client] trusted_proxies where a proxy of yours connects");
    else if (listener.proxy_protocol && client.trusted_proxies.empty())
      doubts.push_back(whose +
                       "expects the PROXY protocol, and [client] trusted_proxies names nobody whose word for "
                       "it would be believed");
  }
}

void doubt_bounds(const Settings& settings, Doubts& doubts) {
  for (const auto& route : settings.routes)
    if (route.max_head > settings.server.max_head)
      doubts.push_back("route " + in_quotes(route.name) +
                       " has a max_head above that of [server], which refuses such heads before");
}

void doubt_messages(const policy::Rule& rule, const Settings& settings, Doubts& doubts) {
  const auto has_messages = [&](const policy::Route& route) {
    return !route.respond && !plainly_disjoint(route.match, rule.match) &&
           std::find(route.upgrades.begin(), route.upgrades.end(), "websocket") != route.upgrades.end();
  };
  if (rule.messages && std::none_of(settings.routes.begin(), settings.routes.end(), has_messages))
    doubts.push_back(of_rule(rule) +
                     "counts messages, and no route that it applies to lets a connection change to a "
                     "WebSocket: its upgrade would have to name \"websocket\"");
}

void doubt_servers(const Settings& settings, Doubts& doubts) {
  for (const auto& upstream : settings.upstreams)
    if (!upstream.tls.verify)
      doubts.push_back(
          "upstream " + in_quotes(upstream.name) +
          " believes any certificate (tls.verify = false): whoever is between can read and change all of it");
}

}  // namespace

std::vector<std::string> find_doubts(const Settings& settings, const Reading& reading) {
  Doubts doubts;
  if (settings.rules.empty()) doubts.push_back("there is no [[rule]]: every request is admitted");
  doubt_invented_keys(settings, doubts);
  doubt_secret(settings, doubts);
  doubt_redis_tls(settings, doubts);
  doubt_tiers(settings, reading, doubts);
  doubt_routes(settings, doubts);
  doubt_rules(settings, doubts);
  doubt_sources(settings, doubts);
  doubt_servers(settings, doubts);
  doubt_trust(settings, doubts);
  doubt_peers(settings, doubts);
  doubt_bounds(settings, doubts);
  doubt_queues(settings, doubts);
  for (const auto& rule : settings.rules) {
    doubt_costs(rule, doubts);
    doubt_bodies(rule, doubts);
    doubt_key(rule, settings.client, doubts);
    doubt_messages(rule, settings, doubts);
  }
  return doubts;
}

}  // namespace weir::app
