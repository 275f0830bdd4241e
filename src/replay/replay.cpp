#include "weir/replay/replay.hpp"

#include "replay/cases.hpp"
#include "replay/verdicts.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/policy/saved_rule.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <boost/container/static_vector.hpp>

namespace weir::replay {

namespace {

using observe::Amendment;

struct Step {
  enum class Kind : std::uint8_t {
    Charge,  // charge the bill of the case with this `number`
    Amend,   // apply the event with this `number`
    Forget,  // reset the key with this `number`
  };
  limit::HybridTimestamp timestamp;
  std::uint32_t number;
  Kind kind;
};

std::vector<Step> in_order(const Cases& all, std::span<const Forgotten> forgotten) {
  std::vector<Step> steps;
  steps.reserve(all.cases.size() + all.events.size() + forgotten.size());
  const auto add = [&](const auto& list, Step::Kind kind, auto turn_of) {
    for (std::uint32_t i = 0; i < list.size(); ++i) steps.push_back({turn_of(list[i]), i, kind});
  };
  add(all.cases, Step::Kind::Charge, [](const Case& one) { return one.timestamp; });
  add(all.events, Step::Kind::Amend, [](const Event& event) { return event.what.timestamp; });
  add(forgotten, Step::Kind::Forget, [](const Forgotten& gone) { return gone.timestamp; });
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.timestamp, a.kind, a.number) < std::tie(b.timestamp, b.kind, b.number);
  });
  return steps;
}

void charge(Case& one, std::span<Entry> entries, limit::KeyTable& table) {
  boost::container::static_vector<limit::Charge, limit::kMaxCharges> charges;
  boost::container::static_vector<limit::Outcome, limit::kMaxCharges> outcomes;
  for (const auto& entry : entries) {
    if (charges.size() == charges.capacity()) break;
    charges.push_back(entry.charge);
    outcomes.emplace_back();
  }
  one.admitted_now = charges.empty() || table.charge(charges, one.at, outcomes);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    entries[i].allowed = outcomes[i].allowed;
    entries[i].overflow = outcomes[i].overflow;
    entries[i].delay = outcomes[i].delay.count();
  }
}

// Applies a change to the charge of `entry`. The log has the change, or Cases::add_guesses() has added it.
// Does nothing if the replay refused the request or this charge. But an overdraft is charged in any case.
void amend(const Event& event, const Case& of, const Entry& entry, limit::KeyTable& table) {
  if (entry.overdraft == 0 && (!of.admitted_now || !entry.allowed)) return;
  const auto& what = event.what;
  const auto departure = event.departs_now ? of.at + base::Duration(entry.delay) : what.departure;
  switch (what.kind) {
    case Amendment::Kind::Refund:
      (void)table.refund(entry.charge, departure, what.at, entry.overflow);
      break;
    case Amendment::Kind::Settle:
      table.settle(entry.charge, {.charged_at = of.at, .actual = what.cost, .now = what.at}, entry.overflow);
      break;
    case Amendment::Kind::Release:
      table.release(entry.charge, what.at, what.ending, entry.overflow);
      break;
  }
}

// Defines all rules in the key table. The table then divides its slots among the rules as in a running weir.
void define_rules(limit::KeyTable& table, std::span<const policy::Rule> rules) {
  const auto saved = policy::saved_rules(rules);
  std::vector<limit::KeyTable::DefinedRule> defined;
  for (std::size_t i = 0; i < rules.size(); ++i) defined.push_back({rules[i].index, saved[i]});
  table.define_rules(defined, {});
}

void perform(const Step& step, Cases& all, std::span<const Forgotten> forgotten, limit::KeyTable& table) {
  switch (step.kind) {
    case Step::Kind::Charge: {
      auto& one = all.cases[step.number];
      if (!one.unmet_now) charge(one, std::span(all.entries).subspan(one.first_entry, one.entries), table);
      break;
    }
    case Step::Kind::Amend: {
      const auto& event = all.events[step.number];
      amend(event, all.cases[event.of_case], all.entries[event.entry], table);
      break;
    }
    case Step::Kind::Forget:
      (void)table.forget(forgotten[step.number].key, {});
      break;
  }
}

}  // namespace

struct Replay::Impl {
  explicit Impl(const Candidate& given) : candidate(given), all(given) {}

  Candidate candidate;
  LogLineReader reader;
  Cases all;
  std::uint64_t lines = 0;
  std::array<std::uint64_t, kUnusable> unusable{};
  // For each run (the life of one key table): true if the log has the run from its beginning, when the table
  // was empty (LogLine::first).
  std::map<std::uint64_t, bool> runs;
};

Replay::Replay(const Candidate& candidate) : impl_(std::make_unique<Impl>(candidate)) {}
Replay::~Replay() = default;

void Replay::add(std::string_view text) {
  ++impl_->lines;
  Unusable why{};
  const auto* line = impl_->reader.read(text, why);
  if (line == nullptr)
    ++impl_->unusable[static_cast<std::size_t>(why)];
  else if (line->is_reset)
    impl_->all.add(line->reset);
  else
    impl_->all.add(*line);
  if (line != nullptr && !line->is_reset) {
    bool& begun = impl_->runs[line->run];
    begun = begun || line->first;
  }
}

Report Replay::run(const std::function<void(double)>& progress, std::size_t most_clients) {
  constexpr std::size_t kEvery = 1 << 14;
  auto& all = impl_->all;
  all.add_guesses();
  const auto forgotten = all.find_forgotten();
  const auto steps = in_order(all, forgotten);
  limit::KeyTable table(impl_->candidate.max_keys);
  define_rules(table, impl_->candidate.rules);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % kEvery == 0) progress(static_cast<double>(i) / static_cast<double>(steps.size()));
    perform(steps[i], all, forgotten, table);
  }
  auto report = compare(all, impl_->candidate, most_clients);
  report.lines = impl_->lines;
  report.resets = all.resets;
  report.unusable = impl_->unusable;
  const auto whole = [](const auto& run) { return run.second; };
  if (!std::all_of(impl_->runs.begin(), impl_->runs.end(), whole))
    report.notes.emplace_back(
        "the log does not start with the start of weir: counts from before its first line are unknown, so "
        "requests refused because of them may be admitted here; add the earlier logs");
  return report;
}

}  // namespace weir::replay
