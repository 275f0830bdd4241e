// The state of every key in this process: a fixed number of slots, shared by all workers.
//
// The one object that workers share and change, so that a limit is the limit, whichever worker a client
// reaches. Sharded, a mutex a shard; any thread may call anything.
//
// Invariants
//  1. Memory is claimed once. A key is found in one of two buckets of eight slots, or not at all.
//  2. Only a drained key (its state equals a fresh one) is ever forgotten. So churning keys buys no fresh
//     state.
//  3. When both buckets of a newcomer are full of live keys that cannot move to their other buckets, or
//     its rule has its share (limit/table/quota.hpp), it shares the overflow cell of its ledger
//     (limit/charge.hpp), which refuses earlier than a cell of its own would: memory runs out on the safe
//     side. Until that cell has drained, newcomers that find room begin as it stands, for it may hold charges
//     of theirs; but for what is held.
//  4. A bill is checked and charged under the locks of all its shards, taken in ascending order, then the
//     overflow cells', then the log store's: all or nothing, and no two bills wait for each other in a
//     circle.
//  5. A refused bill allocates no slot.
//  6. Logs (limit/sliding_log.hpp) of more than one entry take chunks of a store that has what the slots
//     leave of 64 bytes a key, and 1 MiB at least. When it is full, a log's newest entry moves on with each
//     admission: its key is refused earlier, never admitted too soon. That may befall every log of its rule:
//     some 149 keys of 10,000 entries each use up what one rule has of a million keys.
//  7. What concurrency holds is in its key's cell, which no sweep forgets while anything is in flight.
//  8. A key begins anew when it is reset, and when a reload gives its rule another algorithm. What was
//  charged,
//     held or placed before then is neither given back nor settled in what it has become.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/saved.hpp"
#include "weir/limit/turn.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace weir::limit {

// What a charge turned out to cost.
struct Settled {
  base::TimePoint charged_at;
  Cost actual;          // 0 to kMaxCost
  base::TimePoint now;  // when that became known
};

// Of what concurrency holds of a key: so many units more, or fewer.
struct HeldUnits {
  Key key;
  RuleIndex rule = 0;
  std::int64_t units = 0;
};

class KeyTable {
 public:
  // Room for `max_keys` live keys (1 to 2^30); at most 64 bytes of memory each, resident only once used.
  explicit KeyTable(std::size_t max_keys);
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // Checks all, then charges all that are enforced, or none; outcomes[i] answers charges[i].
  // True when charged. A shadow line is charged when it would admit and the enforced ones did; one that only
  // counts, with the line before it, beyond its limit if need be (limit/pair.hpp): it is `allowed` then.
  // REQUIRES charges.size() == outcomes.size() ≤ kMaxCharges; no two lines with one key, nor two with one
  // rule and ledger; of two lines of one rule one ledger even, one odd; now ≥ the epoch.
  // `turn`, here and below: where to note when it happened (limit/turn.hpp); null: nowhere.
  bool charge(std::span<const Charge> charges, base::TimePoint now, std::span<Outcome> outcomes,
              Turn* turn = nullptr);

  // Gives back what `charge` took at `charged_at`, with the delay that each outcome promised.
  void refund(std::span<const Charge> charges, base::TimePoint charged_at, std::span<const Outcome> outcomes,
              base::TimePoint now);

  // Gives back one charge whose promised departure was `departure`, to the cell that its outcome's `overflow`
  // names; of a log, where it was entered, which may be later. A key that is no longer there is fresh: there
  // is nothing to give back. False: the cell stays as it was, because a queue has promised a later departure
  // since, or because the charge counts no more, or the key has begun anew since. Once for each charge.
  bool refund(const Charge& charge, base::TimePoint departure, base::TimePoint now, bool overflow = false,
              Turn* turn = nullptr);

  // Takes back what a charge holds, when its exchange has ended. Once for each; limit::Permit sees to it.
  // REQUIRES limit::holds(*charge.limiter); `overflow` as its outcome said.
  void release(const Charge& charge, base::TimePoint now, const Ending& ending, bool overflow = false,
               Turn* turn = nullptr);

  // Makes a charge of charge.cost at `charged_at` one of `actual` (limit/settle.hpp), in the cell that its
  // outcome's `overflow` names. Once for each charge. REQUIRES limit::settles(*charge.limiter).
  void settle(const Charge& charge, const Settled& settled, bool overflow = false, Turn* turn = nullptr);

  // Where the key of a charge stands, with nothing asked of it. REQUIRES limit::settles(*charge.limiter).
  [[nodiscard]] Outcome standing(const Charge& charge, base::TimePoint now, bool overflow = false) const;

  // What `charge` would answer, with nothing charged.
  [[nodiscard]] Outcome peek(const Charge& charge, base::TimePoint now) const;

  // Resets a key whatever its state: as if nobody had ever asked for it. False: it is not there, or what it
  // is charged with stands in a cell that it shares. What was charged before `now`, or in its microsecond, is
  // neither given back nor settled any more. `turn`: of that (limit/turn.hpp). REQUIRES that nothing of it is
  // held (limit::holds).
  bool forget(const Key& key, base::TimePoint now, Turn* turn = nullptr);
  // Whether there is a state of its own; else it is fresh, or shares a cell.
  [[nodiscard]] bool knows(const Key& key) const;

  // Forgets drained keys in the next `buckets` buckets; a slow hand that goes round.
  // Returns how many it forgot.
  std::size_t sweep(base::TimePoint now, std::size_t buckets);

  // For snapshots (limit/snapshot.hpp). Tells of every key that is live at `now` and that nothing holds; what
  // is charged meanwhile may be told as it was before. REQUIRES that the keys were charged by `rules`.
  void visit(base::TimePoint now, std::span<const SavedRule> rules,
             const std::function<void(const SavedKey&)>& see) const;
  [[nodiscard]] std::vector<SharedCell> shared_cells(base::TimePoint now) const;
  // Puts back what was told. False: no room. A key that is there already stays as it is.
  // REQUIRES that the cell or log is of a limiter of saved.rule, as visit() tells it; `cost_bits` of its
  // logs.
  bool restore(const SavedKey& saved, unsigned cost_bits, base::TimePoint now);
  void restore(const SharedCell& shared);

  // For upgrades, where another process counts what is under way here. Tells `see` what each key holds, and
  // from then on each change of it, in its order; but not of the cells that keys share. By any thread, under
  // a shard's lock: `see` is quick, asks nothing of the table and throws nothing. Whoever watched before is
  // told no more. REQUIRES that the keys were charged by `rules`, and that no reload begins.
  using HeldSink = std::function<void(const HeldUnits&)>;
  void watch_held(std::span<const SavedRule> rules, HeldSink see);
  void unwatch_held();
  // Charges what is held in another process, beyond the limit if need be, until release(). Whether that is in
  // a shared cell: an outcome's `overflow`. REQUIRES limit::holds(*charge.limiter).
  [[nodiscard]] bool hold(const Charge& charge, base::TimePoint now);

  // For reloads, by one thread; charges may go on meanwhile. What RuleIndex `index` stands for from now on: a
  // rule, or newer numbers of one whose keys have another index, whose cells then move on as they are met
  // (limit/rescale.hpp), each once, or begin anew. Before the first charge under it. The limiters outlive the
  // table. REQUIRES of an index that stands for something already: goes_on(index), and that it counts as
  // `rule` does.
  void introduce(RuleIndex index, const SavedRule& rule, base::TimePoint now);
  // `index` stands for a rule as it was in an earlier process, of which keys come back: older than all that
  // is introduced. False: no rule goes on with them. The limiters outlive the table.
  [[nodiscard]] bool introduce_former(RuleIndex index, const SavedRule& rule);
  // Whether it stands for something whose cells have not begun anew under another index since.
  [[nodiscard]] bool goes_on(RuleIndex index) const;
  // Its rule is gone, or was; no charge names it any more. put_in_order() forgets its keys.
  void forget(RuleIndex index);
  // Forgets what is to be forgotten or begins anew, and moves on what nobody has asked for yet, where a rule
  // has but one limiter (a cell does not say which of several it is of). Holds one shard's lock at a time: of
  // a million keys nobody waits for more than some 4,000 of them.
  void put_in_order(base::TimePoint now);
  // No key has it, and no charge names it any more: it may stand for something else.
  void retire(RuleIndex index);

  struct Stats {
    std::uint64_t keys = 0;              // slots taken, drained ones that no sweep has met yet included
    std::uint64_t slots = 0;             // all slots there are
    std::uint64_t overflowed = 0;        // charges that went to an overflow cell, since the start
    std::uint64_t overflow_refused = 0;  // enforced ones that an overflow cell, or what came of it, refused
    std::uint64_t log_chunks = 0;        // of 64 bytes each, that there are
    std::uint64_t log_chunks_used = 0;   // that logs hold
    std::uint64_t log_merged = 0;        // admissions that found none left, since the start
    std::array<std::uint64_t, kMaxRules> keys_by_rule{};  // `keys`, by the rule that charged them last
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::limit
