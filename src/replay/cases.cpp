#include "replay/cases.hpp"

#include "weir/base/hex.hpp"
#include "weir/policy/client_text.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace weir::replay {

namespace {

using observe::Amendment;
using observe::RuleOutcome;

constexpr std::string_view kWon = "won";

// Returns true if the amendment is an overdraft of the rule. Only an overdraft settles a check (a logged cost
// of 0), because a check charges nothing.
bool is_overdraft(const DoneAmendment& done, const LoggedRule& logged) noexcept {
  return done.what.kind == Amendment::Kind::Settle && done.rule == logged.rule && logged.cost == 0;
}

RuleOutcome outcome_of(std::string_view word) noexcept {
  const auto& words = observe::kRuleOutcomeNames;
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? RuleOutcome::Admitted : static_cast<RuleOutcome>(found - words.begin());
}

}  // namespace

Cases::Cases(const Candidate& candidate)
    : requests(candidate), facts(candidate.rules.size()), candidate_(candidate) {
  for (const auto& rule : candidate.rules) names.rules.push_back(rule.name);
}

void Cases::add(const LogLine& line) {
  requests.read(line);
  Case made{.timestamp = line.timestamp, .at = line.evaluated_at};
  made.first_entry = static_cast<std::uint32_t>(entries.size());
  made.first_refusal = static_cast<std::uint32_t>(refusals.size());
  made.admitted_then = line.verdict == Verdict::Admitted;
  made.by_queue = std::any_of(line.rules.begin(), line.rules.end(),
                              [](const LoggedRule& logged) { return logged.outcome == kWon; });
  collect(line, made);
  add_refusals(line, made);
  cases.push_back(made);
  add_overdrafts(line, made);
  if (!made.admitted_then) return;
  add_events(line, made);
  admitted_for_ += line.total;
  ++admitted_;
}

void Cases::add(const Reset& reset) {
  const auto rule = std::find_if(candidate_.rules.begin(), candidate_.rules.end(),
                                 [&](const policy::Rule& each) { return each.name == reset.rule; });
  if (rule == candidate_.rules.end()) return;
  const auto limiters = policy::limiters_of(*rule);
  const bool holds = std::any_of(limiters.begin(), limiters.end(),
                                 [](const auto& applied) { return limit::holds(*applied.limiter); });
  if (rule->asks != reset.asks || holds) {
    ++facts[rule->index].reset_otherwise;
    return;
  }
  for (const auto& gone : reset.keys) forgotten_.push_back({gone.timestamp, gone.key});
  ++resets;
}

// Returns the resets of keys whose clients are known. In the log, the name of a key is a digest under a
// secret. So the replay knows the client of a reset key only if the log has a request of this client. The
// reset of any other key does not matter, because the replay never charges a key without requests.
std::vector<Forgotten> Cases::find_forgotten() const {
  std::vector<Forgotten> found;
  if (forgotten_.empty()) return found;
  std::unordered_multimap<std::string, limit::HybridTimestamp> turns;
  for (const auto& [timestamp, key] : forgotten_) turns.emplace(base::in_hex(key), timestamp);
  names.for_each_client([&](const limit::Key& key, const ClientName& name) {
    const auto [first, last] = turns.equal_range(name.digest);
    for (auto each = first; each != last; ++each) found.push_back({each->second, key});
  });
  return found;
}

// Computes the bill (all charges) of a logged request. A run is the life of one key table. If a rule keeps
// its state in memory, a client gets another key in each run, because each run had its own table. If a rule
// uses Redis, the client's key is the same in all runs, because all processes share that state.
void Cases::collect(const LogLine& line, Case& made) {
  const policy::NamingKeys keys{.table = {line.run, 1}, .shared = {0, 2}};
  const auto& request = requests.request();
  const auto rules = requests.find_rules();
  const auto rejection = line.unverified ? evaluation_.collect_unverified(rules, request, keys)
                                         : evaluation_.collect(rules, request, keys);
  made.unmet_now = static_cast<bool>(rejection);
  logged_bill_.clear();
  for (const auto* rule : requests.logged_rules()) {
    add_logged(*rule, line, logged_bill_);
    if (line.unmet == rule->name && rule->mode == policy::Mode::Enforce) made.unmet_now = true;
  }
  for (const auto* rule : requests.logged_rules_without_question()) add_logged(*rule, line, logged_bill_);
  if (made.unmet_now) return;
  for (const auto* bill : {&evaluation_.local, &evaluation_.remote, &logged_bill_})
    add_entries(line, *bill, made);
}

// Adds the charges that the rule made for the logged request, with the logged keys and costs. A rule makes
// several charges if it applied to several descriptors of a question. The log has the overdrafts of these
// charges in the same order, including those of 0 units.
void Cases::add_logged(const policy::Rule& rule, const LogLine& line, policy::Bill& bill) {
  auto done = line.amendments.begin();
  for (const auto& logged : line.rules) {
    if (logged.rule != rule.name) continue;
    done = std::find_if(done, line.amendments.end(),
                        [&](const DoneAmendment& each) { return is_overdraft(each, logged); });
    const auto overdraft = done != line.amendments.end() ? (done++)->what.cost : limit::Cost{0};
    add_logged(rule, logged, overdraft, bill);
  }
}

void Cases::add_logged(const policy::Rule& rule, const LoggedRule& logged, limit::Cost overdraft,
                       policy::Bill& bill) {
  auto& fact = facts[rule.index];
  if (logged.asks != rule.asks || logged.variant > rule.overrides.size() + rule.tiers.size()) {
    ++fact.logged_differently;
    return;
  }
  ++fact.logged;
  const bool fixed = rule.cost_from.kind == policy::CostSource::Kind::None && rule.descriptor_keys.empty();
  // A logged cost of 0 means that the question was a check. A check charges nothing, unless the log also has
  // an overdraft of it.
  const auto units = logged.cost + overdraft;
  const auto cost = rule.overdraft ? 0 : fixed && units != 0 ? rule.cost : units;
  const auto add = [&](const policy::AppliedLimiter& applied, const limit::Key& key) {
    (void)bill.add({.rule = &rule, .applied = applied, .overdraft = rule.overdraft ? units : 0},
                   {.key = key,
                    .limiter = applied.limiter,
                    .cost = cost,
                    .rule = rule.index,
                    .enforced = rule.mode == policy::Mode::Enforce && !applied.counted,
                    .limiter_id = policy::limiter_id_of(applied.variant, applied.elastic),
                    .counted = applied.counted,
                    .penalty = policy::penalty_of(rule)});
  };
  auto applied = policy::limiter_of(rule, logged.variant, logged.elastic, logged.factor);
  add(applied, logged.key);
  if (!applied.paired) return;
  add(policy::counted_limiter(rule, applied), {logged.key.lo ^ 0x656c'6173'7469'6300, logged.key.hi});
}

void Cases::add_entries(const LogLine& line, const policy::Bill& bill, Case& made) {
  for (std::size_t i = 0; i < bill.charges().size(); ++i) {
    const auto& [rule, applied, descriptors, overdraft] = bill.source(i);
    // The number of earlier charges in the bill by which this rule decides. An elastic rule makes two
    // charges: it decides by one and only counts the other (`counted`).
    std::size_t before = 0;
    for (std::size_t k = 0; k < i; ++k)
      if (bill.source(k).rule == rule && !bill.source(k).applied.counted) ++before;
    const auto* logged = logged_rule(line, *rule, before - (applied.counted && before != 0 ? 1 : 0));
    Entry entry{.charge = bill.charges()[i],
                .counted = applied.counted,
                .overdraft = overdraft,
                .met_then = logged != nullptr};
    entry.charge.limiter = applied.limiter;
    if (logged != nullptr) entry.logged = outcome_of(logged->outcome);
    entry.client = names.client(entry.charge.key, [&, rule = rule] {
      std::array<char, 128> room;
      return ClientName{std::string(policy::write_client(room, rule->key, requests.request())), {}};
    });
    auto& digest = names.clients[entry.client].digest;
    if (logged != nullptr && digest.empty()) digest = base::in_hex(logged->key);
    entries.push_back(entry);
    ++made.entries;
  }
}

// Stores the refusals that the log line states. So the report also counts refusals by rules that no longer
// exist.
void Cases::add_refusals(const LogLine& line, Case& made) {
  for (const auto& logged : line.rules) {
    if (logged.outcome != observe::kRuleOutcomeNames[static_cast<std::size_t>(RuleOutcome::Refused)])
      continue;
    const auto rule = names.rule(logged.rule);
    ClientId client = 0;
    bool known = false;
    for (std::size_t i = made.first_entry; i < entries.size() && !known; ++i) {
      known = entries[i].charge.rule == rule;
      if (known) client = entries[i].client;
    }
    if (!known)
      client = names.client(logged.key, [&] {
        std::array<char, 128> room;
        const policy::KeyPattern address{{{policy::Attribute::Ip, {}}}};
        return ClientName{std::string(policy::write_client(room, address, requests.request())),
                          base::in_hex(logged.key)};
      });
    refusals.push_back({rule, client});
    ++made.refusals;
  }
}

// Adds the settlement of a charge that the logged status or the logged sizes of the bodies require. Adds none
// if a cost in bytes needs sizes that the line does not have.
void Cases::settle_by_line(const LogLine& line, const policy::Rule& rule, Event event) {
  using Kind = policy::Settlement::Kind;
  const auto& settlement = *rule.settlement;
  const bool charged = line.status == 0 || policy::is_charged(settlement, line.status);
  const bool by_status = settlement.kind == Kind::None && settlement.charged_calls == 0 && !charged;
  const bool by_bytes = settlement.kind == Kind::Bytes && line.bytes_in && line.bytes_out;
  if (!by_status && !by_bytes) return;
  event.what.kind = Amendment::Kind::Settle;
  event.what.cost = charged ? policy::cost_of_bytes(settlement, *line.bytes_in, *line.bytes_out) : 0;
  events.push_back(event);
}

// Adds the overdrafts of the replayed rules. Each is charged when the log says, or right after the decision
// if the log has no such overdraft.
void Cases::add_overdrafts(const LogLine& line, const Case& made) {
  const auto number = static_cast<std::uint32_t>(cases.size() - 1);
  for (auto at = made.first_entry; at < entries.size(); ++at) {
    const auto& entry = entries[at];
    if (entry.overdraft == 0) continue;
    Event event{.what = {.at = made.at, .timestamp = made.timestamp}, .of_case = number, .entry = at};
    const auto* logged = logged_rule(line, candidate_.rules[entry.charge.rule]);
    for (const auto& done : line.amendments)
      if (logged != nullptr && is_overdraft(done, *logged)) event.what = done.what;
    event.what.kind = Amendment::Kind::Settle;
    event.what.cost = entry.overdraft;
    event.what.timestamp = std::max(event.what.timestamp, made.timestamp);  // after the charge of the case
    events.push_back(event);
  }
}

// Adds the logged changes of each charge. If the log has none for a permit, adds its release at the end of
// the request. If the log has none for another charge, adds the refund or settlement that the request would
// cause. Exception: adds neither if the log has a decision of this rule and the rule's conditions, key and
// cost have not changed since (Rule::asks).
void Cases::add_events(const LogLine& line, const Case& made) {
  const auto end = line.start + line.total;
  const auto number = static_cast<std::uint32_t>(cases.size() - 1);
  const auto refund =
      std::find_if(line.amendments.begin(), line.amendments.end(),
                   [](const DoneAmendment& done) { return done.what.kind == Amendment::Kind::Refund; });
  for (auto at = made.first_entry; at < entries.size(); ++at) {
    const auto& charge = entries[at].charge;
    const auto& rule = candidate_.rules[charge.rule];
    const auto* logged = logged_rule(line, rule);
    const bool holds = limit::holds(*charge.limiter);
    Event event{.what = {.at = end, .timestamp = limit::timestamp_at(end)}, .of_case = number, .entry = at};
    bool ended = false;
    for (const auto& done : line.amendments) {
      const bool same =
          logged != nullptr && done.rule == rule.name && done.what.elastic == (charge.limiter_id % 2 != 0);
      if (!same || (done.what.kind == Amendment::Kind::Release) != holds) continue;
      if (is_overdraft(done, *logged)) continue;  // add_overdrafts() adds the overdrafts
      if (done.what.kind == Amendment::Kind::Settle && logged->asks != rule.asks) continue;
      event.what = done.what;
      events.push_back(event);
      ended = true;
    }
    if (ended || (logged != nullptr && logged->asks == rule.asks && !holds)) continue;
    if (holds) {
      event.what.kind = Amendment::Kind::Release;
      if (line.upstream.count() > 0 && line.status < 500) event.what.ending.latency = line.upstream;
      events.push_back(event);
    } else if (refund != line.amendments.end()) {
      event.what = refund->what;
      event.departs_now = true;
      events.push_back(event);
    } else if (rule.settlement) {
      settle_by_line(line, rule, event);
    }
  }
}

void Cases::add_guesses() {
  const auto mean = admitted_ != 0 ? admitted_for_ / static_cast<std::int64_t>(admitted_) : base::Duration{0};
  for (std::uint32_t number = 0; number < cases.size(); ++number) {
    const auto& one = cases[number];
    if (one.admitted_then) continue;
    for (auto at = one.first_entry; at < one.first_entry + one.entries; ++at) {
      if (!limit::holds(*entries[at].charge.limiter)) continue;
      const auto end = one.at + mean;
      events.push_back(
          {.what = {.kind = Amendment::Kind::Release, .at = end, .timestamp = limit::timestamp_at(end)},
           .of_case = number,
           .entry = at});
      ++guessed;
    }
  }
}

}  // namespace weir::replay
