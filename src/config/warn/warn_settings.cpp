// The warnings of `weir check`: settings that are allowed but probably not intended.
#include "config/warn/config_warnings.hpp"

#include "weir/base/units.hpp"
#include "weir/config/keys_edit.hpp"
#include "weir/config/locations.hpp"

#include <algorithm>
#include <iterator>

namespace weir::config {

namespace {

void warn_of_need_of_redis(const Settings& settings, const ReadContext& context, ConfigWarnings& warnings) {
  const bool shared = std::any_of(settings.rules.begin(), settings.rules.end(), [](const policy::Rule& rule) {
    return rule.store == policy::Store::Redis;
  });
  // Does not warn if the file itself has the key `store`: with store = "${NAME}", another deployment of the
  // same file may use Redis.
  if (!shared && settings.state.redis && !context.store_is_set)
    warnings.add("[state]", "redis is configured, but no rule is kept in it");
}

void warn_of_idle_acme(const Settings& settings, ConfigWarnings& warnings) {
  if (settings.acme && acme_certificates(settings).empty())
    warnings.add("[acme]",
                 "weir orders no certificate, because no certificate of a listener has the key acme, such as "
                 "tls = { certificates = [{ acme = [\"www.example.com\"] }] }");
}

bool holds_in_redis(const policy::Rule& rule) {
  return rule.store == policy::Store::Redis && limit::holds(rule.limiter);
}

void warn_of_redis_link(const Settings& settings, ConfigWarnings& warnings) {
  const auto& redis = settings.state.redis;
  if (!redis) return;
  if (redis->tls && !redis->tls->verify)
    warnings.add("[state.redis]",
                 "tls: with verify = false, anybody between weir and Redis can pose as Redis");
  if (redis->timeout > base::Duration{1'000'000})
    warnings.add("[state.redis]", "timeout: while Redis is slow, each request that asks it may wait for " +
                                      base::to_readable(redis->timeout));
  if (redis->lease_time < 3 * redis->timeout &&
      std::any_of(settings.rules.begin(), settings.rules.end(), holds_in_redis))
    warnings.add("[state.redis]",
                 "lease_time is less than three times timeout: permits may expire before weir gives up a "
                 "silent connection; raise lease_time");
}

void collect_tiers(const policy::Match& match, std::set<std::string>& tiers) {
  tiers.insert(match.tiers.begin(), match.tiers.end());
  if (match.negated) collect_tiers(*match.negated, tiers);
}

// One element for each rule and route: its name in messages, and the tiers that it mentions.
using NamedTiers = std::vector<std::pair<std::string, std::set<std::string>>>;

NamedTiers tiers_named_by(const Settings& settings) {
  NamedTiers named;
  for (const auto& rule : settings.rules) {
    std::set<std::string> tiers;
    collect_tiers(rule.match, tiers);
    for (const auto& variant : rule.tiers) tiers.insert(variant.tier);
    for (const auto& variant : rule.overrides) collect_tiers(variant.match, tiers);
    named.emplace_back(name_of(rule), std::move(tiers));
  }
  for (const auto& route : settings.routes) {
    std::set<std::string> tiers;
    collect_tiers(route.match, tiers);
    named.emplace_back(name_of(route), std::move(tiers));
  }
  return named;
}

// Warns of tiers that a rule or route mentions but no API key in the keys file has.
void warn_of_named_tiers(const NamedTiers& named, const Settings& settings, const ReadContext& context,
                         ConfigWarnings& warnings) {
  for (const auto& [whose, tiers] : named)
    for (const auto& tier : tiers)
      if (!context.tiers.contains(tier))
        warnings.add(whose, "names the tier " + in_quotes(tier) + ", which " +
                                (settings.client.keys ? "no key of the keys file has"
                                                      : "no client has without a [client] keys file"));
}

// Warns of tiers that an API key has but no rule or route mentions. Never warns if the key of a rule or the
// hash_key of an upstream contains the tier. If no rule or route mentions any tier, another configuration
// probably uses the same keys file for its tiers. In that case, warns only of tiers whose API keys have no
// user, organisation or service.
void warn_of_given_tiers(const NamedTiers& named, const Settings& settings, const ReadContext& context,
                         ConfigWarnings& warnings) {
  std::set<std::string> known;
  for (const auto& [whose, tiers] : named) known.insert(tiers.begin(), tiers.end());
  if (keyed_by(settings, policy::Attribute::Tier)) return;
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const auto& [tier, given] : context.tiers) {
    if (known.contains(tier) || (known.empty() && !given.alone)) continue;
    const auto near = nearest(tier, names);
    warnings.add_at(
        given.where,
        "the tier " + in_quotes(tier) +
            " is not used by any rule or route, so its keys get the limits of keys without a tier" +
            (near.empty() ? "" : "; did you mean " + in_quotes(near) + "?"));
  }
}

}  // namespace

std::optional<std::string> warn_of_unused_tier(const Settings& settings, std::string_view tier) {
  if (tier.empty() || keyed_by(settings, policy::Attribute::Tier)) return std::nullopt;
  std::set<std::string> known;
  for (const auto& [whose, tiers] : tiers_named_by(settings)) known.insert(tiers.begin(), tiers.end());
  if (known.contains(std::string(tier))) return std::nullopt;
  const auto near = nearest(tier, std::vector<std::string_view>(known.begin(), known.end()));
  return "the tier " + in_quotes(tier) +
         " is not used by any rule or route, so the key gets the limits of keys without a tier" +
         (near.empty() ? "" : "; did you mean " + in_quotes(near) + "?");
}

namespace {

void warn_of_tiers(const Settings& settings, const ReadContext& context, ConfigWarnings& warnings) {
  const auto named = tiers_named_by(settings);
  if (settings.client.tier.kind != policy::Source::Kind::Claim)
    warn_of_named_tiers(named, settings, context, warnings);
  warn_of_given_tiers(named, settings, context, warnings);
}

// Warns of a keys file without keys. The file is valid TOML, but it may have been emptied, or truncated
// while it was written.
void warn_of_empty_keys(const policy::ClientSettings& client, ConfigWarnings& warnings) {
  if (!client.keys || client.keys->size() != 0) return;
  warnings.add("[client]", std::string("keys names a file without any [[key]]: ") +
                               (client.unknown_keys == policy::UnknownKeys::Reject
                                    ? "every request with an API key is refused (401)"
                                    : "no API key is known, and none gives a user, org, service or tier"));
}

void warn_of_sources(const Settings& settings, ConfigWarnings& warnings) {
  const auto& client = settings.client;
  if (!client.keys && client.unknown_keys != policy::UnknownKeys::Anonymous)
    warnings.add("[client]", "unknown_keys has no effect without a keys file");
  if (client.tokens && !asks_for_claims(settings))
    warnings.add("[client]", "jwt is configured, but nothing uses a claim");
  if (client.geo && !asks_for_places(settings))
    warnings.add("[client]", "geo is configured, but nothing uses a place");
  if (!client.trusted_proxies.empty()) return;
  const std::pair<std::string_view, const policy::Source*> sources[] = {
      {"user", &client.user}, {"org", &client.org}, {"service", &client.service}};
  for (const auto& [name, source] : sources)
    if (source->kind != policy::Source::Kind::None && source->kind != policy::Source::Kind::Claim)
      warnings.add("[client]", std::string(name) +
                                   " is believed only from trusted proxies, but trusted_proxies names none");
}

// Returns the name of the claim from which weir takes the attribute; empty if the attribute is not from a
// claim.
std::string claim_of(const policy::AttributeRef& ref, const policy::ClientSettings& client) {
  using policy::Attribute;
  if (ref.kind == Attribute::Claim) return ref.name;
  const auto& source = ref.kind == Attribute::User      ? client.user
                       : ref.kind == Attribute::Org     ? client.org
                       : ref.kind == Attribute::Service ? client.service
                       : ref.kind == Attribute::Device  ? client.device
                       : ref.kind == Attribute::ApiKey  ? client.api_key
                                                        : policy::Source{};
  return source.kind == policy::Source::Kind::Claim ? source.name : std::string();
}

// Returns true if each match of the rule with a condition on a claim also has a condition on the issuer
// (`iss`).
bool names_issuer(const policy::Rule& rule) {
  const auto fits = [](const policy::Match& match) {
    return match.claims.empty() ||
           std::any_of(match.claims.begin(), match.claims.end(),
                       [](const policy::NamedText& claim) { return claim.name == "iss"; });
  };
  const auto all_fit = [&](const policy::Match& match) {
    return fits(match) && (!match.negated || fits(*match.negated));
  };
  return all_fit(rule.match) &&
         std::all_of(rule.overrides.begin(), rule.overrides.end(),
                     [&](const policy::Variant& variant) { return all_fit(variant.match); });
}

// Warns if tokens come from several issuers and a setting uses a claim without the issuer. Two issuers may
// give the same value of a claim to different users.
void warn_of_several_issuers(const Settings& settings, ConfigWarnings& warnings) {
  const auto& client = settings.client;
  if (!client.tokens || client.tokens->settings().size() < 2) return;
  if (client.tier.kind == policy::Source::Kind::Claim)
    warnings.add("[client]",
                 "tier is a claim of tokens from several issuers, so each of them can give its "
                 "clients every tier");
  for (const auto& rule : settings.rules) {
    std::string shared;
    bool by_issuer = false;
    for (const auto& part : rule.key)
      for (const auto& ref : part) {
        const auto claim = claim_of(ref, client);
        by_issuer = by_issuer || claim == "iss";
        if (shared.empty() && !claim.empty()) shared = policy::describe(ref);
      }
    if (!shared.empty() && !by_issuer)
      warnings.add(rule,
                   "is keyed by " + in_quotes(shared) +
                       ", a claim of tokens from several issuers: clients of different issuers with the "
                       "same value share one limit; add \"claim:iss\" to its key");
    if (names_claims(rule) && !names_issuer(rule))
      warnings.add(rule,
                   "has conditions on claims of tokens from several issuers, and each of them can give its "
                   "clients every claim; add iss = \"…\" to claims");
  }
}

void warn_of_trust(const Settings& settings, ConfigWarnings& warnings) {
  const auto& trusted = settings.client.trusted_proxies;
  const auto takes = [&](const base::IpAddress& one, const base::IpAddress& other) {
    return std::any_of(trusted.begin(), trusted.end(),
                       [&](const auto& block) { return block.contains(one) && block.contains(other); });
  };
  const auto v4 = [](std::uint32_t octets) { return base::IpAddress::v4(octets); };
  if (takes(v4(0), v4(0xffffffff)))
    warnings.add(
        "[client]",
        "trusted_proxies contains every address, so every client can choose the address it is counted by");
}

// Warns of listeners on unix sockets without trusted proxies, because all their clients count as one client
// ("::"). Also warns of listeners for the PROXY protocol without trusted proxies.
void warn_of_peers(const Settings& settings, ConfigWarnings& warnings) {
  const auto& client = settings.client;
  for (const auto& listener : settings.listeners) {
    const auto whose = name_of(listener);
    if (listener.serves != net::Serves::Proxy) continue;
    if (listener.address.is_unix() && !policy::is_trusted(client, {}))
      warnings.add(whose,
                   "accepts unix sockets, whose clients have no address: all of them count as one client, "
                   "\"::\"; if your proxy connects there, add \"unix:\" to [client] trusted_proxies");
    else if (listener.proxy_protocol && client.trusted_proxies.empty())
      warnings.add(whose,
                   "expects the PROXY protocol, but [client] trusted_proxies names no proxy that it would be "
                   "believed from");
  }
}

// Warns of rules that may read larger bodies, of requests or responses, than max_body_memory permits. Such
// bodies are never read.
void warn_of_body_memory(const Settings& settings, ConfigWarnings& warnings) {
  const auto memory = settings.server.max_body_memory;
  for (const auto& rule : settings.rules) {
    const bool reads_answers = rule.settlement && rule.settlement->kind == policy::Settlement::Kind::Json;
    const auto most = std::max(rule.max_body, reads_answers ? rule.settlement->max_body : 0);
    if (most > memory)
      warnings.add(rule, "may read bodies of " + std::to_string(most) +
                             " bytes (max_body), but [server] max_body_memory is " + std::to_string(memory) +
                             ": longer bodies are never read; write a smaller max_body or more memory");
  }
}

// Warns of listeners whose permits may need much memory.
void warn_of_permit_memory(const Settings& settings, ConfigWarnings& warnings) {
  constexpr std::uint64_t kPermitKiB = 40;  // measured, without long fields of the question (docs/ask.md)
  constexpr std::uint64_t kMuchMiB = 1024;
  for (const auto& listener : settings.listeners) {
    const auto most = listener.ask.max_permits;
    const auto mib = most * kPermitKiB / 1024;
    if (listener.serves == net::Serves::Decide && mib > kMuchMiB)
      warnings.add(name_of(listener), "may keep " + std::to_string(most) +
                                          " permits (max_permits), which need some " + std::to_string(mib) +
                                          " MiB of memory, 40 KiB each; write a smaller max_permits, or "
                                          "make sure that the machine has this memory");
  }
}

void warn_of_servers(const Settings& settings, ConfigWarnings& warnings) {
  for (const auto& upstream : settings.upstreams)
    if (!upstream.tls.verify)
      warnings.add(
          "upstream " + in_quotes(upstream.name),
          "accepts any certificate (tls.verify = false): anybody in between can read and change the traffic");
}

bool has_bounds(const upstream::ServerSettings& server) {
  return server.max_in_flight != 0 || server.limit;
}

// Warns of queue settings that have no effect. Does not warn of settings that are equal to the defaults.
void warn_of_needless_queues(const Settings& settings, ConfigWarnings& warnings) {
  const upstream::UpstreamSettings usual;
  for (const auto& upstream : settings.upstreams) {
    const bool unsaid = upstream.queue == usual.queue && upstream.max_wait == usual.max_wait;
    if (!unsaid && std::none_of(upstream.servers.begin(), upstream.servers.end(), has_bounds))
      warnings.add(
          "upstream " + in_quotes(upstream.name),
          "has queue or max_wait, but no server has max_in_flight or limit, so no request ever waits");
  }
}

// Returns true for a text such as "$TOKEN", by which a shell reads the environment. weir takes it as it is.
bool is_variable_of_a_shell(std::string_view text) {
  if (text.size() < 2 || text.front() != '$' || (text[1] >= '0' && text[1] <= '9')) return false;
  return std::all_of(text.begin() + 1, text.end(),
                     [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); });
}

// Warns of secrets that everyone can guess, because they are the name of a variable. Does not show them.
void warn_of_unread_variables(const Settings& settings, ConfigWarnings& warnings) {
  const auto check = [&](const std::string& whose, const char* key, const std::string& secret) {
    if (is_variable_of_a_shell(secret))
      warnings.add(whose, std::string(key) +
                              " is the name of a variable with \"$\" before it, which weir takes as it is; "
                              "write ${NAME} to read the environment");
  };
  check("[admin]", "token", settings.admin.token);
  check("[state]", "key_secret", settings.state.key_secret);
  if (settings.state.redis) check("[state.redis]", "password", settings.state.redis->password);
  for (const auto& listener : settings.listeners) check(name_of(listener), "token", listener.ask.token);
}

// Warns of a secret that others could find by trying, if they can read Redis or the logs.
void warn_of_short_secret(const Settings& settings, ConfigWarnings& warnings) {
  constexpr std::size_t kLeast = 16;
  if (!settings.state.key_secret.empty() && settings.state.key_secret.size() < kLeast)
    warnings.add("[state]",
                 "key_secret has fewer than 16 characters, so others can guess it and find out which "
                 "clients the names in Redis stand for; write such as openssl rand -hex 16 prints");
}

}  // namespace

std::vector<Warning> find_warnings(const Settings& settings, const ReadContext& context) {
  ConfigWarnings warnings(context);
  warn_of_routes(settings, warnings);
  warn_of_rules(settings, warnings);
  warn_of_body_memory(settings, warnings);
  warn_of_permit_memory(settings, warnings);
  warn_of_tiers(settings, context, warnings);
  warn_of_idle_acme(settings, warnings);
  warn_of_need_of_redis(settings, context, warnings);
  warn_of_redis_link(settings, warnings);
  warn_of_unread_variables(settings, warnings);
  warn_of_short_secret(settings, warnings);
  warn_of_sources(settings, warnings);
  warn_of_several_issuers(settings, warnings);
  warn_of_empty_keys(settings.client, warnings);
  warn_of_servers(settings, warnings);
  warn_of_needless_queues(settings, warnings);
  warn_of_trust(settings, warnings);
  warn_of_peers(settings, warnings);
  return warnings.take();
}

}  // namespace weir::config
