// Warns of rules that probably do not do what was intended.
#include "config/warn/capacity.hpp"
#include "config/warn/config_warnings.hpp"
#include "config/warn/overlap.hpp"

#include "weir/limit/shares.hpp"
#include "weir/policy/rule_finder.hpp"

#include <algorithm>
#include <iterator>

namespace weir::config {

namespace {

using policy::Attribute;

// Warns of settings for bodies and messages if no listener forwards requests, because questions have neither.
void warn_of_idle_settings(const Settings& settings, ConfigWarnings& warnings) {
  const bool proxies = std::any_of(
      settings.listeners.begin(), settings.listeners.end(),
      [](const net::ListenerSettings& listener) { return listener.serves == net::Serves::Proxy; });
  if (proxies) return;
  for (const auto& rule : settings.rules)
    if (!rule.bandwidth.empty() || rule.messages)
      warnings.add(rule, std::string("has ") + (rule.messages ? "messages" : "bandwidth") +
                             ", which has no effect: no listener forwards requests, and questions have no "
                             "bodies and no messages");
}

// Returns true if listeners answer questions, and each of these listeners answers only rate limit calls of
// Envoy.
bool answers_only_envoy(const Settings& settings) {
  using net::Serves;
  return answers_questions(settings) && std::none_of(settings.listeners.begin(), settings.listeners.end(),
                                                     [](const net::ListenerSettings& listener) {
                                                       return listener.serves == Serves::Decide;
                                                     });
}

// If only Envoy asks, warns of each rule for questions that needs to know how a request ended. Envoy does not
// report how requests end.
void warn_of_unknown_ends(const Settings& settings, ConfigWarnings& warnings) {
  if (!answers_only_envoy(settings)) return;
  const std::string why =
      ", because Envoy does not say how a request ended; forward requests by weir, or ask at a [[listener]] "
      "with serves = \"decide\"";
  for (const auto& rule : settings.rules) {
    if (!is_for_questions(rule)) continue;
    if (limit::holds(*rule.limiter))
      warnings.add(
          rule, "is a concurrency limit that counts only calls to which weir replies at that moment" + why);
    else if (rule.settlement)
      warnings.add(rule, "never corrects its charge by the answer, so it keeps its reserve of " +
                             std::to_string(rule.cost) + why);
  }
}

// Warns of rules that apply to no request. If a listener answers questions, any rule may apply, because
// questions need no route.
void warn_of_reach(const Settings& settings, ConfigWarnings& warnings) {
  if (answers_questions(settings)) return warn_of_idle_settings(settings, warnings);
  for (const auto& rule : settings.rules)
    if (is_for_questions(rule))
      warnings.add(rule, std::string("needs a ") + (rule.match.domains.empty() ? "descriptor" : "domain") +
                             ", which only a question has, but no listener answers questions; write serves = "
                             "\"decide\" or \"rls\" in a [[listener]]");
    else if (std::all_of(settings.routes.begin(), settings.routes.end(),
                         [&](const policy::Route& route) { return plainly_disjoint(route, rule); }))
      warnings.add(rule, "applies to no route: no route has its name, host, methods or path");
}

void warn_of_overrides(const policy::Rule& rule, ConfigWarnings& warnings) {
  const auto& all = rule.overrides;
  for (auto at = all.begin(); at != all.end(); ++at) {
    const auto before = std::find_if(
        all.begin(), at, [&](const policy::Variant& one) { return plainly_covers(one.match, at->match); });
    if (before != at)
      warnings.add(rule, "has an override for " + at->match.describe() + " that never applies: the one for " +
                             before->match.describe() + " before it matches every request that it matches");
  }
}

// Warns if a rule refuses every request that does not state its cost. Does not warn if the default cost is
// the highest admitted cost plus 1, because operators write this to make a stated cost obligatory.
void warn_of_unsaid_cost(const policy::Rule& rule, ConfigWarnings& warnings) {
  if (rule.cost_from.kind == policy::CostSource::Kind::None) return;
  const auto most = most_at_once(rule);
  if (rule.cost > most + 1)
    warnings.add(rule, "refuses every request that does not state its cost: such a request costs " +
                           std::to_string(rule.cost) + ", but at most " + std::to_string(most) +
                           " can be spent at once");
}

// Warns if a rule charges server errors: error responses state no cost, so the reserved amount remains
// charged. Does not warn if the cost is in bytes, because such a cost needs no statement.
void warn_of_charged_errors(const policy::Rule& rule, ConfigWarnings& warnings) {
  using Kind = policy::Settlement::Kind;
  if (!rule.settlement || rule.settlement->kind == Kind::None || rule.settlement->kind == Kind::Bytes) return;
  if (rule.settlement->charged.empty())
    warnings.add(rule, "charges its reserve of " + std::to_string(rule.cost) +
                           " for server errors, too; write charge = { status = [\"2xx\"] } to charge "
                           "only successful responses");
}

// Returns true if no part of the rule's key names a client, so that many clients share a key.
bool is_shared_key(const policy::Rule& rule) {
  constexpr Attribute kClients[] = {
      Attribute::Ip,    Attribute::ApiKey, Attribute::User,   Attribute::Service,     Attribute::Cookie,
      Attribute::Claim, Attribute::Device, Attribute::Header, Attribute::CertSubject, Attribute::Descriptor};
  return std::none_of(rule.key.begin(), rule.key.end(), [&](const policy::KeyPart& part) {
    return std::any_of(part.begin(), part.end(), [&](const policy::AttributeRef& ref) {
      return std::find(std::begin(kClients), std::end(kClients), ref.kind) != std::end(kClients);
    });
  });
}

// Returns true if a rule with the algorithm `concurrency` bounds how many of this rule's requests are in
// flight.
bool has_concurrency_beside(const policy::Rule& rule, const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(), [&](const policy::Rule& other) {
    return other.mode == policy::Mode::Enforce && limit::holds(*other.limiter) &&
           plainly_covers(other.match, rule.match);
  });
}

// Warns of costs in bytes in two cases:
// * A client can use up a limit that clients share: it sends a large Content-Length, but not the body.
// * Responses that arrive at the same time can exceed the limit, and the limiter is a window, which forgets
//   the excess.
void warn_of_bytes(const policy::Rule& rule, const Settings& settings, ConfigWarnings& warnings) {
  if (!rule.settlement || rule.settlement->kind != policy::Settlement::Kind::Bytes) return;
  if (rule.cost_from.kind == policy::CostSource::Kind::Length && is_shared_key(rule))
    warnings.add(
        rule,
        "reserves the Content-Length that a client states, in a limit that clients share: one client "
        "may block all others with a body that it does not send; write reserve = 1, or a key of "
        "clients");
  const auto& limiter = *rule.limiter;
  const bool forgets = std::holds_alternative<limit::FixedWindow>(limiter) ||
                       std::holds_alternative<limit::SlidingWindow>(limiter) ||
                       std::holds_alternative<limit::SlidingLog>(limiter);
  if (rule.settlement->bodies != policy::Bodies::Request && rule.cost == 1 && forgets &&
      !has_concurrency_beside(rule, settings))
    warnings.add(rule,
                 "holds one unit for each answer until it has passed, so answers at the same time may exceed "
                 "the limit many times, and its window forgets that; use algorithm = \"token_bucket\", write "
                 "reserve, or add a rule with algorithm = \"concurrency\"");
}

// Warns if one weir's part of a limit is too small for any request, although the whole limit is large enough.
void warn_of_local_share(const policy::Rule& rule, ConfigWarnings& warnings) {
  if (!rule.local_share || admits_idle(*rule.local_share, rule.cost)) return;
  if (!admits_idle(rule.limiter, rule.cost)) return;
  warnings.add(rule, "refuses everything while Redis does not answer: a request costs " +
                         std::to_string(rule.cost) +
                         ", but this instance's share of the limit ([state] replicas) admits at most " +
                         std::to_string(most_at_once(*rule.local_share)) + " at once");
}

// Returns true if all clients share the same queues, because no part of the rule's key distinguishes clients.
bool is_shared_queue(const policy::Rule& rule) {
  constexpr Attribute kOfMany[] = {Attribute::Route,   Attribute::Host, Attribute::Method,   Attribute::Path,
                                   Attribute::Country, Attribute::Tier, Attribute::Upstream, Attribute::City,
                                   Attribute::Region,  Attribute::Asn,  Attribute::Domain};
  const auto of_many = [&](const policy::AttributeRef& ref) {
    return std::find(std::begin(kOfMany), std::end(kOfMany), ref.kind) != std::end(kOfMany);
  };
  return std::holds_alternative<limit::LeakyBucket>(*rule.limiter) &&
         std::all_of(rule.key.begin(), rule.key.end(), [&](const policy::KeyPart& part) {
           return std::all_of(part.begin(), part.end(), of_many);
         });
}

// Warns of shared queues without queue_per_client, if any rule uses Redis. A full queue without Redis makes
// room for a new request: it drops a request of the client with the most requests. With Redis, a full queue
// drops no request, so one client can fill it.
void warn_of_queues(const Settings& settings, ConfigWarnings& warnings) {
  const bool asks_redis = std::any_of(settings.rules.begin(), settings.rules.end(),
                                      [](const auto& rule) { return rule.store == policy::Store::Redis; });
  if (!asks_redis) return;
  for (const auto& rule : settings.rules)
    if (rule.bandwidth.empty() && is_shared_queue(rule) && rule.queue_per_client == policy::kNoBound)
      warnings.add(
          rule,
          "is a queue that clients share, without queue_per_client: one client may occupy all of it; "
          "write queue_per_client");
}

// Returns true if the rule reads the body of every request, whatever headers the request has.
bool reads_every_body(const policy::Rule& rule) {
  auto head = rule.match;
  head.body_words.clear();
  if (head.negated && head.negated->max_body != 0) head.negated.reset();
  const bool some_only = std::any_of(rule.overrides.begin(), rule.overrides.end(),
                                     [](const auto& variant) { return variant.match.max_body != 0; });
  return rule.max_body != 0 && is_everything(head) && !some_only;
}

void warn_of_bodies(const policy::Rule& rule, ConfigWarnings& warnings) {
  if (reads_every_body(rule))
    warnings.add(rule,
                 "reads the body of every request into memory, and refuses bodies longer than max_body (413) "
                 "or compressed (415); limit it with match.path or match.methods");
}

void warn_of_messages(const policy::Rule& rule, const Settings& settings, ConfigWarnings& warnings) {
  const auto has_messages = [&](const policy::Route& route) {
    return !route.respond && !plainly_disjoint(route, rule) &&
           std::find(route.upgrades.begin(), route.upgrades.end(), "websocket") != route.upgrades.end();
  };
  const auto speaks_http2 = [](const net::ListenerSettings& listener) {
    return listener.serves == net::Serves::Proxy && (listener.protocols.h2 || listener.protocols.h2c);
  };
  if (!rule.messages || std::any_of(settings.listeners.begin(), settings.listeners.end(), speaks_http2))
    return;
  if (rule.messages->direction == policy::MessageDirection::Server)
    return warnings.add(rule,
                        "counts gRPC messages of servers, but no listener speaks HTTP/2; write protocols = "
                        "[\"h2c\"] in a listener without tls");
  if (std::none_of(settings.routes.begin(), settings.routes.end(), has_messages))
    warnings.add(rule,
                 "counts messages, but no route that it applies to allows WebSockets, and no listener speaks "
                 "HTTP/2 for gRPC; write upgrade = [\"websocket\"] in a route");
}

// Returns how many entries a full log of the rule has; 0 if the limiter is not an exact sliding log.
std::uint64_t longest_log(const policy::Rule& rule) {
  const auto* log = std::get_if<limit::SlidingLog>(&*rule.limiter);
  return log != nullptr && log->is_exact() ? log->rate().count : 0;
}

// Returns a value of max_keys that is large enough to reserve `keys_each` keys for each rule.
std::size_t enough_keys(std::size_t rules, std::size_t logs, std::size_t keys_each) {
  std::size_t max_keys = 4 * keys_each * rules;
  while (limit::share_of_each(max_keys, rules, logs).keys < keys_each) max_keys += 100'000;
  return max_keys;
}

// Warns if the key table reserves few keys, or little memory for a log, for each rule. The clients of a
// single rule may use up all memory that is not reserved.
void warn_of_shares(const Settings& settings, ConfigWarnings& warnings) {
  constexpr std::size_t kFewKeys = 100;
  const auto& rules = settings.rules;
  const auto keeps_log = [](const policy::Rule& rule) {
    return std::holds_alternative<limit::SlidingLog>(*rule.limiter);
  };
  const auto logs = static_cast<std::size_t>(std::count_if(rules.begin(), rules.end(), keeps_log));
  const auto share = limit::share_of_each(settings.state.max_keys, rules.size(), logs);
  if (rules.size() > 1 && share.keys < kFewKeys)
    warnings.add("[state.memory]",
                 "max_keys = " + std::to_string(settings.state.max_keys) + " reserves " +
                     std::to_string(share.keys) + " keys for each of the " + std::to_string(rules.size()) +
                     " rules, and the clients of one rule may use up the rest; write max_keys = " +
                     std::to_string(enough_keys(rules.size(), logs, kFewKeys)) + " or more");
  for (const auto& rule : rules)
    if (logs > 1 && longest_log(rule) > share.log_entries)
      warnings.add(rule,
                   "remembers up to " + std::to_string(longest_log(rule)) +
                       " requests of a client, but max_keys = " + std::to_string(settings.state.max_keys) +
                       " reserves memory for " + std::to_string(share.log_entries) +
                       " for each such rule; raise max_keys, or use sliding_window");
}

// Warns if nearly every request that a rule matches is rejected, because too many rules apply to it.
void warn_of_too_many_at_once(const Settings& settings, ConfigWarnings& warnings) {
  const auto* rule = policy::first_beyond(settings.rules, limit::kMaxCharges, policy::Reach::Usual);
  if (rule == nullptr) return;
  warnings.add(*rule, "is beyond the " + std::to_string(limit::kMaxCharges) +
                          " limits that may apply to a request: nearly every request that it matches gets "
                          "503; give rules a narrower `match`");
}

}  // namespace

void warn_of_rules(const Settings& settings, ConfigWarnings& warnings) {
  if (settings.rules.empty()) warnings.add("there is no [[rule]], so every request is admitted");
  warn_of_keys(settings, warnings);
  warn_of_matches(settings, warnings);
  warn_of_reach(settings, warnings);
  warn_of_unknown_ends(settings, warnings);
  warn_of_queues(settings, warnings);
  warn_of_shares(settings, warnings);
  warn_of_too_many_at_once(settings, warnings);
  for (const auto& rule : settings.rules) {
    warn_of_overrides(rule, warnings);
    warn_of_unsaid_cost(rule, warnings);
    warn_of_charged_errors(rule, warnings);
    warn_of_bytes(rule, settings, warnings);
    warn_of_local_share(rule, warnings);
    warn_of_bodies(rule, warnings);
    warn_of_messages(rule, settings, warnings);
  }
}

}  // namespace weir::config
