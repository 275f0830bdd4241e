#include "replay/verdicts.hpp"

#include <algorithm>
#include <unordered_map>

namespace weir::replay {

namespace {

using observe::RuleOutcome;

class Comparison {
 public:
  Comparison(const Cases& all, const Candidate& candidate) : all_(all), candidate_(candidate) {
    for (const auto& name : all.names.rules) {
      report_.rules.emplace_back().name = name;
      report_.rules.back().in_candidate = false;
    }
    for (const auto& rule : candidate.rules) {
      auto& report = report_.rules[rule.index];
      report.in_candidate = true;
      report.shadow = rule.mode == policy::Mode::Shadow;
    }
    for (const auto& one : all.cases) add(one);
  }

  Report report(std::size_t most_clients) {
    note_rules();
    note_rest();
    for (const auto& [of, changes] : clients_) {
      const auto& name = all_.names.clients[of & kClientBits];
      report_.rules[of >> 32].clients.push_back({name.text, name.digest, changes});
    }
    for (auto& rule : report_.rules) keep_most(rule.clients, most_clients);
    return std::move(report_);
  }

 private:
  static constexpr std::uint64_t kClientBits = 0xffff'ffff;

  void add(const Case& one) {
    const auto when = one.at;
    if (report_.requests++ == 0) report_.first = report_.last = when;
    report_.first = std::min(report_.first, when);
    report_.last = std::max(report_.last, when);
    const bool now = one.by_queue ? one.admitted_then : one.admitted_now;
    ++(one.admitted_then ? report_.admitted_then : report_.refused_then);
    ++(now ? report_.admitted_now : report_.refused_now);
    by_queue_ += one.by_queue ? 1 : 0;
    unmet_ += one.unmet_now ? 1 : 0;
    if (one.admitted_then && !now) ++report_.newly.refused;
    if (!one.admitted_then && now) ++report_.newly.admitted;
    hear_rules(one, now);
  }

  void hear_rules(const Case& one, bool now) {
    for (auto i = one.first_refusal; i < one.first_refusal + one.refusals; ++i) {
      const auto& refusal = all_.refusals[i];
      ++report_.rules[refusal.rule].refused_then;
      if (!now) continue;
      ++report_.rules[refusal.rule].newly.admitted;
      ++changes(refusal.rule, refusal.client).admitted;
    }
    for (auto i = one.first_entry; i < one.first_entry + one.entries; ++i) {
      const auto& entry = all_.entries[i];
      if (entry.counted) continue;
      auto& rule = report_.rules[entry.charge.rule];
      ++rule.met;
      overflowed_ += entry.overflow ? 1 : 0;
      if (!entry.allowed) ++rule.refused_now;
      if (entry.met_then && entry.logged == RuleOutcome::ShadowRefused) {
        ++rule.refused_then;
        ++rule.shadow_then;
      }
      if (entry.met_then && !one.by_queue && outcome_now(entry) != entry.logged) ++rule.otherwise;
      if (entry.allowed || !entry.charge.enforced || !one.admitted_then || now) continue;
      ++rule.newly.refused;
      ++changes(entry.charge.rule, entry.client).refused;
    }
  }

  static RuleOutcome outcome_now(const Entry& entry) noexcept {
    if (!entry.allowed) return entry.charge.enforced ? RuleOutcome::Refused : RuleOutcome::ShadowRefused;
    if (entry.overflow) return RuleOutcome::Overflow;
    return entry.delay > 0 ? RuleOutcome::Delayed : RuleOutcome::Admitted;
  }

  Changes& changes(std::uint64_t rule, ClientId client) { return clients_[rule << 32 | client]; }

  static void keep_most(std::vector<ClientChanges>& clients, std::size_t most) {
    const auto more = [](const ClientChanges& a, const ClientChanges& b) {
      const auto one = a.newly.refused + a.newly.admitted, other = b.newly.refused + b.newly.admitted;
      return one != other ? one > other : a.client != b.client ? a.client < b.client : a.digest < b.digest;
    };
    const auto kept = std::min(most, clients.size());
    std::partial_sort(clients.begin(), clients.begin() + static_cast<std::ptrdiff_t>(kept), clients.end(),
                      more);
    clients.resize(kept);
  }

  void note(std::string text) { report_.notes.push_back(std::move(text)); }

  // Adds notes about each rule to the report: which facts the log lacks, and what the replay does not show.
  void note_rules() {
    for (const auto& rule : candidate_.rules) {
      const auto& facts = all_.facts[rule.index];
      const auto& lacking = all_.requests.lacks(rule);
      const auto in_quotes = "\"" + rule.name + "\"";
      if (!lacking.empty() && facts.logged == 0)
        report_.rules[rule.index].left_out =
            "it uses " + lacking +
            (facts.logged_differently != 0
                 ? ", and the rule of that name in the log used something else"
                 : ", which the log does not contain, and the log has no such rule");
      else if (!lacking.empty() && facts.logged_differently != 0)
        note(
            "rule " + in_quotes + " uses " + lacking + ": for " + std::to_string(facts.logged_differently) +
            " requests the log has a rule of that name that used something else; the replay leaves them out");
      if (rule.store == policy::Store::Redis)
        note("rule " + in_quotes + " is kept in Redis; the replay counts only these logs, by weir's clock");
      if (!rule.bandwidth.empty()) {
        note("rule " + in_quotes + " paces bodies, which the replay does not show");
        continue;
      }
      if (std::holds_alternative<limit::LeakyBucket>(*rule.limiter))
        note("rule " + in_quotes +
             " queues; the log does not contain requests that left the queue while they waited");
      if (rule.settlement && rule.settlement->charged_calls != 0)
        note("rule " + in_quotes +
             " charges gRPC calls by their status, which is not in the log; if the log has no such rule, its "
             "charges stand");
      if (rule.messages) note("rule " + in_quotes + " also counts messages, which are not in the log");
      if (facts.reset_otherwise != 0)
        note("of rule " + in_quotes + " " + std::to_string(facts.reset_otherwise) +
             " keys were reset under another version of the rule; the replay does not reset them");
      note_unseen(rule);
    }
  }

  void note_unseen(const policy::Rule& rule) {
    using policy::Attribute;
    constexpr std::pair<Attribute, const char*> kSeen[] = {
        {Attribute::ApiKey, "an API key"}, {Attribute::User, "a user"},     {Attribute::Org, "an org"},
        {Attribute::Service, "a service"}, {Attribute::Device, "a device"}, {Attribute::Tier, "a tier"},
        {Attribute::Country, "a country"}};
    for (std::size_t i = 0; i < std::size(kSeen); ++i) {
      const bool asks = std::any_of(rule.key.begin(), rule.key.end(), [&](const policy::KeyPart& part) {
        return std::any_of(part.begin(), part.end(), [&](const policy::AttributeRef& attribute) {
          return attribute.kind == kSeen[i].first;
        });
      });
      if (asks && !all_.requests.has_attribute[i])
        note("rule \"" + rule.name + "\" uses " + kSeen[i].second +
             ", but no line has one: no request had one, or weir was not configured to read it");
    }
    if (rule.elastic && !all_.requests.has_load)
      note("rule \"" + rule.name + "\" is elastic; the log has no load, so the replay assumes full load");
    if (rule.adapt && !all_.requests.has_factors)
      note("rule \"" + rule.name +
           "\" has adapt; the log has no factor below 100%, so the replay assumes the whole limit");
  }

  void note_rest() {
    if (by_queue_ != 0)
      note(std::to_string(by_queue_) +
           " requests displaced another one in a queue; the replay assumes that they do so again");
    if (unmet_ != 0)
      note(std::to_string(unmet_) + " requests lack something that a rule of the new configuration needs");
    if (overflowed_ != 0)
      note(std::to_string(overflowed_) + " charges found the key table full; raise [state] memory max_keys");
    if (all_.guessed != 0)
      note(
          "requests that were refused then, if admitted now, are taken to be under way for as long as others "
          "were on "
          "average");
    if (report_.newly.admitted != 0 &&
        std::any_of(candidate_.rules.begin(), candidate_.rules.end(),
                    [](const policy::Rule& rule) { return rule.settlement.has_value(); }))
      note(
          "what an answer would have said to a request that was refused then is not known: its charge "
          "stands");
    if (all_.requests.uses_logged_routes)
      note("routes use something that the log does not contain; each request keeps its recorded route");
  }

  const Cases& all_;
  const Candidate& candidate_;
  Report report_;
  std::unordered_map<std::uint64_t, Changes> clients_;
  std::uint64_t by_queue_ = 0, unmet_ = 0, overflowed_ = 0;
};

}  // namespace

Report compare(const Cases& all, const Candidate& candidate, std::size_t most_clients) {
  return Comparison(all, candidate).report(most_clients);
}

}  // namespace weir::replay
