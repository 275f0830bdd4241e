// Fuzzes bills on a table that is so small that it overflows. A bill contains all charges of one request. A
// bill must be charged as a whole or not at all. A rejected bill must change nothing.
#include "fuzz/input.hpp"

#include "weir/limit/key_table.hpp"

#include <algorithm>
#include <vector>

namespace weir::fuzz {
namespace {

using base::TimePoint;
using limit::Charge;
using limit::KeyTable;
using limit::Outcome;

constexpr std::size_t kRules = 6;
constexpr std::uint64_t kClients = 24;

limit::Key key_of(std::uint64_t client, std::uint64_t rule) {
  base::SipHash128 hash({});
  hash.part(rule);
  hash.part(client);
  return hash.digest();
}

std::vector<Charge> bill_from(Input& in, const std::vector<limit::Limiter>& limiters) {
  std::vector<Charge> bill;
  const std::uint8_t which = in.byte();
  for (std::size_t rule = 0; rule < limiters.size(); ++rule) {
    if ((which >> rule & 1) == 0) continue;
    bill.push_back({.key = key_of(in.byte() % kClients, rule),
                    .limiter = &limiters[rule],
                    .cost = in.between(1, limit::kMaxCost),
                    .rule = static_cast<limit::RuleIndex>(rule),
                    .enforced = in.byte() % 4 != 0});
  }
  return bill;
}

std::vector<Outcome> peeked(const KeyTable& table, const std::vector<Charge>& bill, TimePoint now) {
  std::vector<Outcome> outcomes;
  for (const auto& line : bill) outcomes.push_back(table.peek(line, now));
  return outcomes;
}

bool all_in_their_slots(const std::vector<Outcome>& outcomes) {
  return std::none_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.overflow; });
}

void check(const std::vector<Charge>& bill, const std::vector<Outcome>& outcomes, bool charged) {
  bool fits = true;
  for (std::size_t i = 0; i < bill.size(); ++i) fits = fits && (!bill[i].enforced || outcomes[i].allowed);
  require(charged == fits, "charged when every enforced line admits");
}

struct Peeks {
  std::vector<Outcome> outcomes;
  std::vector<bool> known;  // for each charge: true if the table stores its key
};

Peeks look(const KeyTable& table, const std::vector<Charge>& bill, TimePoint now) {
  Peeks looks{peeked(table, bill, now), {}};
  for (const auto& line : bill) looks.known.push_back(table.has_state(line.key));
  return looks;
}

// Checks that a rejected bill has charged nothing. The bill may still evict a key whose limit has refilled,
// or move a key within the table. So a key that had its own state may now use the overflow cell (the state
// that all keys outside the table share), or the reverse.
void check_unchanged(const std::vector<Charge>& bill, const Peeks& before, const Peeks& after,
                     TimePoint now) {
  const KeyTable empty(16);
  for (std::size_t i = 0; i < bill.size(); ++i) {
    const auto& was = before.outcomes[i];
    if (before.known[i] && !after.known[i])
      require(was == empty.peek(bill[i], now), "a refused bill forgets drained keys alone");
    else
      require(was == after.outcomes[i] || was.overflow != after.outcomes[i].overflow,
              "a refused bill changes nothing");
  }
}

// Refunds the charges or releases their permits at once. So slots of the table become free and are taken
// again often.
void end(KeyTable& table, const std::vector<Charge>& bill, const std::vector<Outcome>& outcomes,
         TimePoint now, bool refunds) {
  if (refunds) return table.refund(bill, now, outcomes, now);
  for (std::size_t i = 0; i < bill.size(); ++i)
    if (outcomes[i].allowed && holds(*bill[i].limiter)) table.release(bill[i], now, {}, outcomes[i].overflow);
}

void run(Input& in) {
  std::vector<limit::Limiter> limiters;
  for (std::size_t i = 0; i < kRules; ++i)
    if (auto limiter = limiter_from(in)) limiters.push_back(*limiter);
  KeyTable table(16);
  TimePoint now{};
  while (in.left() != 0) {
    now += base::Duration(static_cast<base::Duration::rep>(in.between(0, 10'000'000'000)));
    const auto bill = bill_from(in, limiters);
    const auto before = look(table, bill, now);
    const auto keys = table.stats().keys;
    std::vector<Outcome> outcomes(bill.size());
    const bool charged = table.charge(bill, now, outcomes);
    check(bill, outcomes, charged);
    if (!charged) check_unchanged(bill, before, look(table, bill, now), now);
    if (!charged) require(table.stats().keys <= keys, "a refused bill takes no slot");
    const bool logs = std::any_of(bill.begin(), bill.end(), [](const Charge& line) {
      return std::holds_alternative<limit::SlidingLog>(*line.limiter);
    });
    if (all_in_their_slots(before.outcomes) && all_in_their_slots(outcomes) && !logs)
      require(before.outcomes == outcomes, "a bill answers what each of its lines would");
    if (charged && in.byte() % 2 == 0) end(table, bill, outcomes, now, in.byte() % 2 == 0);
    table.sweep(now, 1);
  }
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::Input in(bytes, size);
  weir::fuzz::run(in);
  return 0;
}
