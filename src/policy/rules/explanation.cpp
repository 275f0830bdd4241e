#include "weir/policy/explanation.hpp"

#include "policy/rules/descriptors.hpp"

#include "weir/base/hex.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/octet_text.hpp"

namespace weir::policy {

namespace {

std::string in_words(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string number(double value) {
  auto text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Returns why a rule does not apply. REQUIRES: the rule neither rejects nor charges the request.
std::string why_not(const Rule& rule, const Request& request) {
  if (!rule.descriptor_keys.empty() && request.descriptors.empty())
    return "the rule needs a descriptor, which only a question has";
  auto why = rule.match.why_not(request);
  if (!why.empty()) return why;
  if (request.descriptor != nullptr && !may_apply(rule, *request.descriptor))
    return "the descriptor must have exactly the keys that the rule names: " + in_words(rule.descriptor_keys);
  const auto* missing = missing_part(rule, request);
  return "the request has no " + (missing != nullptr ? describe(KeyPattern{*missing}) : "key");
}

const Elastic& elastic_of(const Rule& rule, std::uint16_t variant) {
  if (variant == 0) return *rule.elastic;
  const std::size_t place = variant - 1U;
  const auto& of =
      place < rule.overrides.size() ? rule.overrides[place] : rule.tiers[place - rule.overrides.size()];
  return *of.elastic;
}

}  // namespace

std::vector<RuleCheck> check_all(std::span<const Rule> rules, const Request& request,
                                 const NamingKeys& keys) {
  std::vector<RuleCheck> checks;
  Evaluation evaluation;
  for (const Rule& rule : rules) {
    evaluation.clear();
    RuleCheck check{.rule = &rule};
    check.rejection = evaluation.collect_rule(rule, request, keys);
    const auto& bill = evaluation.local.empty() ? evaluation.remote : evaluation.local;
    if (check.rejection) {
      check.why_not = describe(check.rejection);
    } else if (bill.empty() && evaluation.paced.empty()) {
      const bool by_descriptor = !rule.descriptor_keys.empty() && !request.descriptors.empty();
      check.why_not = why_not(rule, *RequestOfCharge(request, by_descriptor ? 1 : 0));
    } else {
      const auto selected = bill.empty() ? 0 : bill.source(0).descriptors;
      for (const auto& value : key_values(rule, *RequestOfCharge(request, selected)))
        check.key.push_back(describe(value));
      if (!bill.empty()) check.cost = bill.charges()[0].cost + bill.source(0).overdraft;
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

std::string describe_choice(const Rule& rule, const AppliedLimiter& applied) {
  std::string text;
  const std::size_t variant = applied.variant;
  if (variant > rule.overrides.size() + rule.tiers.size())
    text = "messages";
  else if (variant > rule.overrides.size())
    text = "tier " + rule.tiers[variant - rule.overrides.size() - 1].tier;
  else if (variant > 0)
    text = "override " + std::to_string(variant) + " (" + rule.overrides[variant - 1].match.describe() + ")";
  if (applied.factor != limit::kWholeFactor)
    return text + (text.empty() ? "" : ", ") + std::to_string(limit::percent_of(applied.factor)) +
           "% because upstream " + rule.adapt->upstream + " is unwell";
  if (!applied.elastic) return text;
  return text + (text.empty() ? "" : ", ") + "while load is below " +
         number(elastic_of(rule, applied.variant).while_load_below);
}

LimitState state_of(const Rule& rule, const AppliedLimiter& applied, const limit::Key& key,
                    const limit::Outcome& outcome) {
  const auto margin = applied.advertised == applied.limiter
                          ? 0
                          : limit::quota(*applied.limiter) - limit::quota(*applied.advertised);
  const auto limit = limit::quota_of(*applied.advertised, outcome);
  const auto left = outcome.remaining > margin ? outcome.remaining - margin : 0;
  // The scaled limiter of a rule that adapts has a rate that is not in the configuration. So people see the
  // configured limit, and `choice` contains the percentage.
  const bool whole = applied.factor == limit::kWholeFactor;
  const auto* shown =
      whole ? applied.advertised : limiter_of(rule, applied.variant, applied.elastic).advertised;
  return {
      .choice = describe_choice(rule, applied),
      .limiter = rule.bandwidth.empty() ? limit::describe(*shown) : "bandwidth " + rule.bandwidth,
      .store = rule.store == Store::Redis ? "redis" : "memory",
      .note = outcome.overflow
                  ? "the key table is full: this client shares a counter with other new clients of the rule"
                  : "",
      .digest = base::in_hex(key),
      .counted = applied.counted,
      .paces = !rule.bandwidth.empty(),
      .known = true,
      .outcome = outcome,
      .limit = limit,
      .remaining = std::min<std::uint64_t>(left, limit)};
}

ClientExplanation explain_client(const ClientIdentity& client) {
  ClientExplanation explanation;
  explanation.address = client.address.to_string();
  explanation.peer = client.peer.to_string();
  explanation.peer_trusted = client.peer_trusted;
  const auto add = [&](const char* name, std::string_view value) {
    if (!value.empty()) explanation.attributes.emplace_back(name, octet_text(value));
  };
  if (!client.api_key.empty())
    add("api_key", describe(KeyValue{{Attribute::ApiKey, {}}, std::string(client.api_key)}).substr(8));
  add("user", client.user);
  add("org", client.org);
  add("tier", client.tier);
  add("service", client.service);
  add("device", client.device);
  add("country", client.country);
  add("city", client.city);
  add("region", client.region);
  add("asn", client.asn);
  add("cert:subject", client.certificate_subject);
  if (client.token_fault) add("token", sentence_of(*client.token_fault));
  return explanation;
}

}  // namespace weir::policy
