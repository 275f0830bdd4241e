// Describes the configuration for people: the text of `weir check`.
#include "config/read/settings_sections.hpp"
#include "config/show/describe_front.hpp"
#include "config/warn/overlap.hpp"

#include "weir/base/units.hpp"
#include "weir/limit/limiter.hpp"
#include "weir/net/listener.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace weir::config {

namespace {

std::string server_words(const upstream::ServerSettings& server) {
  auto words = (!server.tls ? " " : server.is_service ? " https+" : " https://") + server.name();
  if (server.tls && server.tls_name != server.address.host) words += " (as " + server.tls_name + ")";
  if (server.weight != 1) words += " x" + std::to_string(server.weight);
  if (server.max_in_flight != 0) words += " (at most " + std::to_string(server.max_in_flight) + " in flight)";
  if (server.limit) words += " (at most " + limit::to_string(server.limit->gcra_core().rate()) + ")";
  return words;
}

std::string upstream_line(const upstream::UpstreamSettings& upstream) {
  constexpr std::string_view kBalanceWords[] = {"round_robin", "least_in_flight", "random_two", "hash of "};
  auto line = "upstream " + in_quotes(upstream.name) + ":";
  for (const auto& server : upstream.servers) line += server_words(server);
  if (upstream.servers.size() > 1)
    line.append(", ").append(kBalanceWords[static_cast<std::size_t>(upstream.balance)]);
  if (upstream.servers.size() > 1 && upstream.balance == upstream::Balance::Hash)
    line += policy::describe(upstream.hash_key);
  const auto speaks_tls = [](const upstream::ServerSettings& server) { return server.tls; };
  if (std::any_of(upstream.servers.begin(), upstream.servers.end(), speaks_tls))
    line += !upstream.tls.verify      ? ", accepts any certificate"
            : upstream.tls.ca.empty() ? ", certificates verified by the system's authorities"
                                      : ", certificates verified by " + upstream.tls.ca;
  constexpr std::string_view kProtocolWords[] = {"", ", HTTP/2 over TLS", ", HTTP/2 without TLS",
                                                 ", HTTP/2 or HTTP/1.1 (ALPN)"};
  line += kProtocolWords[static_cast<std::size_t>(upstream.protocol)];
  if (!upstream.host.empty()) line += ", with Host " + upstream.host;
  if (upstream.health)
    line += upstream.health->grpc ? std::string(", gRPC health check")
                                  : ", health check " + upstream.health->path;
  return line + "\n";
}

std::string statuses(const std::vector<policy::StatusRange>& ranges) {
  std::string words;
  for (const auto& range : ranges) {
    words += ", " + std::to_string(range.first);
    if (range.last != range.first) words += "-" + std::to_string(range.last);
  }
  return words;
}

std::string retry_words(const upstream::Retry& retry) {
  if (retry.attempts == 1 || retry.budget == 0) return "no retries";
  return "retries on " + std::to_string(retry.attempts) + " servers at most, " +
         std::to_string(retry.budget) + "% of requests, first after " + base::to_string(retry.backoff) +
         " at most, if" + (retry.broken ? " broken" : "") + (retry.late ? " late" : "") +
         statuses(retry.statuses);
}

std::string name_lines(const upstream::UpstreamSettings& upstream) {
  const auto named = [](const upstream::ServerSettings& server) { return net::is_name(server.address); };
  if (std::none_of(upstream.servers.begin(), upstream.servers.end(), named)) return {};
  if (upstream.resolve == base::Duration{0}) return "    names looked up only at start\n";
  return "    names looked up when their TTL ends, after " + base::to_string(upstream.resolve_least) +
         " to " + base::to_string(upstream.resolve) + "\n";
}

// Returns the lines about an upstream's timeouts, ejections, retries and health checks.
std::string failure_lines(const upstream::UpstreamSettings& upstream) {
  const auto& timeouts = upstream.timeouts;
  const auto& ejection = upstream.ejection;
  using base::to_string;
  auto text = "    connect " + to_string(timeouts.connect) + ", all connects " +
              to_string(timeouts.connect_total) + "; response " + to_string(timeouts.response) + ", idle " +
              to_string(timeouts.idle) + ", tunnel " + to_string(timeouts.tunnel) +
              (timeouts.expect_continue >= std::min(timeouts.response, timeouts.total)
                   ? std::string()
                   : ", 100-continue after " + to_string(timeouts.expect_continue)) +
              (timeouts.total == base::kForever ? std::string() : ", total " + to_string(timeouts.total)) +
              "\n";
  text += "    ejected after " + std::to_string(ejection.failures) + " failures for " +
          to_string(ejection.least) + " to " + to_string(ejection.most) + ", slow start " +
          to_string(ejection.slow_start) + "\n";
  text += "    " + retry_words(upstream.retry) + "\n";
  if (!upstream.health) return text;
  const auto& health = *upstream.health;
  return text + "    checked every " + to_string(health.interval) + ", timeout " + to_string(health.timeout) +
         ": down after " + std::to_string(health.unhealthy_after) + " failures, up after " +
         std::to_string(health.healthy_after) + " of" +
         (health.grpc ? std::string(" SERVING") : statuses(health.statuses).substr(1)) + "\n";
}

std::string store_words(const policy::Rule& rule) {
  if (rule.store == policy::Store::Memory) return "in memory";
  switch (rule.on_store_failure) {
    case policy::OnStoreFailure::Local:
      return "in redis, else local " +
             (rule.local_share ? limit::describe(*rule.local_share) : std::string());
    case policy::OnStoreFailure::Open:
      return "in redis, else open";
    case policy::OnStoreFailure::Closed:
      break;
  }
  return "in redis, else closed";
}

std::string lease_words(const policy::Rule& rule) {
  if (!rule.lease) return "";
  return ", leases up to " +
         std::to_string(policy::units_of(*rule.lease, rule.soft ? *rule.soft : rule.limiter));
}

// Returns the words about the rule's cost, for the rule's line in describe(). Returns an empty text if every
// request costs one unit.
std::string cost_words(const policy::Rule& rule) {
  if (rule.settlement && rule.settlement->kind != policy::Settlement::Kind::None) {
    const auto& settlement = *rule.settlement;
    auto words = ", cost from " + policy::describe_cost(settlement);
    if (settlement.scale != 0) words += " x " + std::to_string(settlement.scale);
    if (rule.cost_from.kind != policy::CostSource::Kind::None)
      return words + ", reserve " + policy::describe(rule.cost_from) + ", else " + std::to_string(rule.cost);
    return words + ", reserve " + std::to_string(rule.cost);
  }
  if (rule.cost_from.kind == policy::CostSource::Kind::None)
    return rule.cost == 1 ? "" : ", cost " + std::to_string(rule.cost);
  auto words = ", cost from " + policy::describe(rule.cost_from);
  if (rule.cost_from.scale != 0) words += " x " + std::to_string(rule.cost_from.scale);
  return words + ", else " + std::to_string(rule.cost);
}

// Returns the words about the limit, for the line of a rule, a tier or an override in describe().
template <class Numbers>
std::string limit_words(const Numbers& numbers) {
  auto words = limit::describe(numbers.limiter);
  if (numbers.soft) words += ", soft up to " + std::to_string(limit::quota(*numbers.soft));
  if (numbers.elastic) {
    std::array<char, 32> load;
    const auto end = std::to_chars(load.begin(), load.end(), numbers.elastic->while_load_below).ptr;
    words += ", elastic " + limit::describe(numbers.elastic->limiter) + " while load is below " +
             std::string(load.begin(), end);
  }
  return words;
}

std::string adapt_words(const policy::Rule& rule) {
  if (!rule.adapt) return "";
  const auto& [latency, errors, floor] = rule.adapt->terms;
  std::string words;
  if (latency) words += " takes over " + base::to_string(*latency);
  if (errors) words += (latency ? " or" : "") + (" fails over " + std::to_string(*errors)) + "%";
  return ", down to " + std::to_string(limit::percent_of(floor)) + "% while upstream " +
         in_quotes(rule.adapt->upstream) + words;
}

std::string penalty_words(const policy::Rule& rule) {
  if (!rule.penalty) return "";
  const auto& [after, first, grows, most, forget] = *rule.penalty;
  return ", penalty of " + base::to_string(first) + " after " + std::to_string(after) +
         (after == 1 ? " refusal, x " : " refusals, x ") + std::to_string(grows) + " up to " +
         base::to_string(most) + ", forgotten after " + base::to_string(forget);
}

// Returns the words about the rule's refusals: the header fields that the rule adds, and the jitter if it
// differs from the jitter of [server].
std::string refusal_words(const policy::Rule& rule, unsigned usual_jitter) {
  std::string words;
  std::string_view fields = rule.refusal_fields;
  while (!fields.empty()) {
    const auto end = fields.find("\r\n");
    words.append(words.empty() ? ", refusals with " : " and ").append(fields.substr(0, end));
    fields.remove_prefix(end + 2);
  }
  if (rule.retry_after_jitter != usual_jitter)
    words += ", Retry-After up to " + std::to_string(rule.retry_after_jitter) + "% longer";
  return words;
}

std::string key_words(const policy::Rule& rule) {
  return rule.key.empty() ? std::string("shared by all") : "per " + policy::describe(rule.key);
}

std::string bandwidth_lines(const policy::Rule& rule) {
  auto text = "    rule " + in_quotes(rule.name) + ": bodies paced to " + rule.bandwidth + ", " +
              key_words(rule) + ", in memory\n";
  if (!is_everything(rule.match)) text += "      where " + rule.match.describe() + "\n";
  return text;
}

std::string rule_lines(const policy::Rule& rule, unsigned usual_jitter) {
  if (!rule.bandwidth.empty()) return bandwidth_lines(rule);
  auto text = "    rule " + in_quotes(rule.name) + ": " + limit_words(rule) + ", " + key_words(rule) + ", " +
              store_words(rule) + lease_words(rule) + (rule.mode == policy::Mode::Shadow ? ", shadow" : "");
  if (const auto charge = rule.settlement ? policy::describe_charge(*rule.settlement) : ""; !charge.empty())
    text += ", " + charge;
  text += cost_words(rule) + (rule.overdraft ? ", charged beyond the limit" : "") + adapt_words(rule) +
          penalty_words(rule);
  if (rule.messages) {
    const auto& bucket = std::get<limit::TokenBucket>(*rule.messages->limiter);
    text += ", messages " + limit::to_string(bucket.gcra_core().rate()) + ", burst " +
            std::to_string(bucket.quota()) + (rule.messages->closes ? ", else closed" : ", else delayed");
    if (rule.messages->direction == policy::MessageDirection::Server) text += ", of servers";
    if (rule.messages->direction == policy::MessageDirection::Both) text += ", of both sides";
  }
  if (rule.max_body != 0) text += ", reads bodies up to " + size_words(rule.max_body);
  if (rule.queue_per_client != policy::kNoBound)
    text += ", at most " + std::to_string(rule.queue_per_client) + " for each client";
  text += refusal_words(rule, usual_jitter);
  text += "\n";
  if (!is_everything(rule.match)) text += "      where " + rule.match.describe() + "\n";
  for (const auto& variant : rule.overrides)
    text += "      override " + variant.match.describe() + ": " + limit_words(variant) + "\n";
  for (const auto& variant : rule.tiers)
    text += "      tier " + variant.tier + ": " + limit_words(variant) + "\n";
  return text;
}

std::string answer_words(const policy::CannedResponse& respond) {
  auto words = "answer " + std::to_string(respond.status);
  if (respond.location) words += " to " + respond.location->describe();
  for (const auto& field : respond.fields.written) words += ", " + field.name + ": " + field.value.describe();
  return words;
}

// Returns the line about the header fields that a route changes in requests, or in responses. `what`:
// "request" or "response". `shows_values`: false for requests, because the values may be secret.
std::string edit_line(std::string_view what, const policy::FieldEdits& edits, bool shows_values) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : ", ") + word; };
  for (const auto& field : edits.written)
    add((field.replaces ? "set " : "add ") + field.name +
        (shows_values ? ": " + field.value.describe() : ""));
  for (const auto& name : edits.removed) add("remove " + name);
  return words.empty() ? "" : "    " + std::string(what) + " headers: " + words + "\n";
}

std::string edit_lines(const policy::Route& route) {
  if (!route.edits) return "";
  const auto& [request, response, path] = *route.edits;
  std::string text;
  if (path && path->pattern) text += "    path: rewritten from " + path->pattern->describe() + "\n";
  if (path && !path->strip.empty()) text += "    path: without " + path->strip + " at its beginning\n";
  if (path && !path->add.empty()) text += "    path: with " + path->add + " before it\n";
  return text + edit_line("request", request, false) + edit_line("response", response, true);
}

std::string route_lines(const Settings& settings, const policy::Route& route) {
  auto text = "route " + in_quotes(route.name) + ": " + route.match.describe() + " -> ";
  const bool usage = route.respond && route.respond->usage;
  text += usage           ? "the client's own limits, uncharged"
          : route.respond ? answer_words(*route.respond)
                          : "upstream " + in_quotes(settings.upstreams[route.upstream].name);
  for (const auto& protocol : route.upgrades)
    if (!route.respond && protocol != "websocket") text += ", may upgrade to " + protocol;
  if (!route.respond && route.upgrades.empty()) text += ", without upgrades";
  if (route.max_head != 0) text += ", heads up to " + size_words(route.max_head);
  if (route.max_body != 0) text += ", bodies up to " + size_words(route.max_body);
  if (route.honor_retry_after) text += ", honors Retry-After of 429";
  if (route.ambiguous_paths == policy::AmbiguousPaths::Pass) text += ", ambiguous paths pass";
  if (route.priority != policy::kDefaultPriority) text += ", priority " + std::to_string(route.priority);
  text += "\n" + edit_lines(route);
  std::string rules;
  for (const auto& rule : settings.rules)
    if (!usage && !is_for_questions(rule) && !plainly_disjoint(route, rule))
      rules += rule_lines(rule, settings.server.retry_after_jitter);
  return text + (rules.empty() ? "    no rule applies\n" : rules);
}

// Returns the lines about the rules that apply to questions. Questions need no route.
std::string question_lines(const Settings& settings) {
  if (!answers_questions(settings)) return "";
  std::string rules;
  for (const auto& rule : settings.rules)
    if (rule.bandwidth.empty()) rules += rule_lines(rule, settings.server.retry_after_jitter);
  return "questions\n" + (rules.empty() ? "    no rule applies\n" : rules);
}

// Returns the line about Redis. The line has lease_time only if a rule counts concurrent requests in Redis.
std::string redis_line(const Settings& settings) {
  const auto& redis = *settings.state.redis;
  const bool holds = std::any_of(settings.rules.begin(), settings.rules.end(), [](const policy::Rule& rule) {
    return rule.store == policy::Store::Redis && limit::holds(rule.limiter);
  });
  const std::string tls = redis.tls ? " with TLS" : "";
  const std::string leases = tls + (holds ? ", permits leased for " + base::to_string(redis.lease_time) : "");
  if (redis.topology == redis::Topology::Standalone)
    return "redis " + redis.address.to_string() + leases + "\n";
  if (redis.topology == redis::Topology::Cluster) {
    std::string text = "redis cluster, nodes";
    for (const auto& address : redis.nodes) text += " " + address.to_string();
    return text + leases + "\n";
  }
  std::string text = "redis master " + in_quotes(redis.sentinel.master) + ", sentinels";
  for (const auto& address : redis.sentinel.addresses) text += " " + address.to_string();
  return text + leases + "\n";
}

}  // namespace

std::string describe(const Settings& settings) {
  auto text = front_lines(settings);
  if (!settings.state.snapshot.empty()) text += "snapshot " + settings.state.snapshot + "\n";
  if (settings.state.redis) text += redis_line(settings);
  for (const auto& upstream : settings.upstreams)
    text += upstream_line(upstream) + name_lines(upstream) + failure_lines(upstream);
  for (const auto& [tier, priority] : settings.tier_priorities)
    text += "tier " + in_quotes(tier) + ": priority " + std::to_string(priority) + "\n";
  for (const auto& route : settings.routes) text += route_lines(settings, route);
  text += question_lines(settings);
  return text + alert_lines(settings);
}

}  // namespace weir::config
