// The state of every key in this process: a fixed number of slots, shared by all workers.
//
// The program owns the table, which outlives all workers. Workers share the table, so a client has one limit,
// whichever workers serve it. The table consists of shards with a mutex each. Every member is safe to call
// from any thread.
//
// Invariants
//  1. The constructor claims all memory. A key is in one of two buckets of eight slots, or in none.
//  2. Only a drained key (one whose state equals that of a fresh key) is evicted. So a client cannot get a
//     fresh state by inventing keys.
//  3. A newcomer is a key without a slot. The newcomer gets no slot if both buckets are full of live keys
//     that cannot move. It also gets none if its rule has used up its share of the table
//     (limit/table/quota.hpp). The newcomer then uses the overflow cell of its limiter ID (limit/charge.hpp):
//     a state that all keys without a slot share. So a newcomer is rejected earlier than with a state of its
//     own. If the newcomer later gets a slot, the slot starts with a copy of the overflow cell, which may
//     hold its earlier charges. The slot starts fresh if the overflow cell has drained. Permits are not
//     copied.
//  4. A bill is charged as a whole or not at all. To charge a bill, a thread locks the shards in ascending
//     order, then the overflow cells, then the log store. So two threads never deadlock.
//  5. A rejected bill allocates no slot.
//  6. A log (limit/sliding_log.hpp) of more than one entry takes chunks of a shared store. The slots and the
//     store together use at most 64 bytes a key, except that the store is never smaller than 1 MiB. If the
//     store is full, each admission adds its cost to the newest entry of its log and moves that entry to the
//     time of the admission. The key is then rejected earlier, never admitted too soon. A few keys can cause
//     this for all logs of a rule. Example: in a table of a million keys with one rule that keeps logs, about
//     149 keys of 10,000 entries use up the store.
//  7. A concurrency limit counts permits in the key's cell. A cell is not evicted while a request holds a
//     permit of it.
//  8. Violations and penalties (limit/penalty.hpp) are kept beside the slots, for keys with or without a
//     slot. Their memory is bounded by 16 bytes for each key of the table, or by 1 MiB if that is more. The
//     lock of a shard guards both the slots and the penalties of its keys, so a charge is decided by its
//     limiter and its penalty at one instant.
//  9. A key starts anew, with nothing used, when it is reset or when a reload gives its rule another
//     algorithm. Earlier charges and permits are then neither refunded nor settled in the new state.
#pragma once

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/hybrid_timestamp.hpp"
#include "weir/limit/outcome.hpp"
#include "weir/limit/saved.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace weir::limit {

// The actual cost of an earlier charge. The cost became known only after the charge.
struct Settled {
  base::TimePoint charged_at;
  Cost actual;          // 0 to kMaxCost
  base::TimePoint now;  // when the actual cost became known
};

// A change of the number of permits that a key holds: `units` more, or fewer if negative.
struct PermitDelta {
  Key key;
  RuleIndex rule = 0;
  std::int64_t units = 0;
};

// The refusals that KeyTable::charge() counts as violations of the key (limit/penalty.hpp).
enum class Violations : std::uint8_t {
  All,
  // All refusals except those by an enforced queue that is full: the caller may still make room by displacing
  // a queued request. If the caller does not, it must call violate().
  ButFullQueues,
  None,  // none, because an earlier charge() of the same request has counted the refusals
};

class KeyTable {
 public:
  // Creates a table for `max_keys` live keys (1 to 2^30). Reserves at most 64 bytes of memory a key. A page
  // of this memory becomes resident at its first use.
  explicit KeyTable(std::size_t max_keys);
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // Checks all charges of a bill, then charges either all enforced charges or none. Returns true if the bill
  // was charged. Sets outcomes[i] to the outcome of charges[i]. Four kinds of charges differ:
  // * A check (its cost is 0) is decided like the others, but never charged.
  // * A shadow charge (`enforced` is false) cannot prevent the bill's charge. It is made if the bill is
  //   charged and its own limiter admits it.
  // * A charge with `counted` set is made if the previous charge is made, even beyond its own limit. Its
  //   outcome is then `allowed`. Some limiters cannot be charged beyond their limit (limit/pair.hpp).
  // * If a charge has a penalty, a refusal by its limiter is a violation (limit/penalty.hpp). The violation
  //   is noted although nothing is charged. `violations` selects the refusals to note.
  //
  // If `timestamp` is not null, it receives the timestamp of the change (limit/hybrid_timestamp.hpp), here
  // and in the functions below. Allocates no memory if `violations` is None.
  //
  // REQUIRES: charges.size() == outcomes.size() ≤ kMaxCharges. All keys differ. If a charge has `counted`
  // set, its limiter ID is odd and that of the previous charge is even, or the reverse. now ≥ the epoch.
  bool charge(std::span<const Charge> charges, base::TimePoint now, std::span<Outcome> outcomes,
              HybridTimestamp* timestamp = nullptr, Violations violations = Violations::All);
  // Counts a refusal of a charge that has a penalty, and changes the outcome as charge() does. Must be called
  // if charge() with Violations::ButFullQueues has refused the charge because a queue is full, and the
  // request is refused in the end. Also called after peek() has returned a refusal.
  void violate(const Charge& charge, base::TimePoint now, Outcome& outcome);

  // Refunds the allowed charges of a bill that charge() charged at `charged_at`. `outcomes` must be the
  // outcomes that charge() returned: a queued request departs at `charged_at` plus its outcome's delay.
  void refund(std::span<const Charge> charges, base::TimePoint charged_at, std::span<const Outcome> outcomes,
              base::TimePoint now);

  // Refunds one charge. Must be called at most once for each charge. `departure` must be the time of the
  // charge plus its delay. `overflow` must be Outcome::overflow of that charge; true selects the shared
  // overflow cell. A log refunds the entry that contains the charge, even if that entry has moved to a later
  // time.
  //
  // Returns false if the state stays unchanged for one of these reasons:
  // * A queue has promised a later departure.
  // * The charge has expired.
  // * After the charge, the key was reset or its rule got another algorithm.
  // Otherwise returns true, even if the key has no slot, because a key without a slot is fresh already.
  bool refund(const Charge& charge, base::TimePoint departure, base::TimePoint now, bool overflow = false,
              HybridTimestamp* timestamp = nullptr);

  // Releases the permits of a charge whose exchange has ended. Must be called once for each charge
  // (limit::Permit does so). `overflow` must be Outcome::overflow of that charge. REQUIRES:
  // limit::holds(*charge.limiter).
  void release(const Charge& charge, base::TimePoint now, const Ending& ending, bool overflow = false,
               HybridTimestamp* timestamp = nullptr);

  // Replaces the cost of an earlier charge by its actual cost (limit/settle.hpp). `overflow` must be
  // Outcome::overflow of that charge. Must be called at most once for each charge. REQUIRES:
  // limit::settles(*charge.limiter).
  void settle(const Charge& charge, const Settled& settled, bool overflow = false,
              HybridTimestamp* timestamp = nullptr);

  // Returns the key's present outcome (`remaining`, `reset_after`, `retry_after`, `more_after`) without a
  // charge. REQUIRES: limit::settles(*charge.limiter).
  [[nodiscard]] Outcome current_outcome(const Charge& charge, base::TimePoint now,
                                        bool overflow = false) const;

  // Returns the outcome that `charge`, which may be a check, would have now. Charges nothing, and notes no
  // violation.
  [[nodiscard]] Outcome peek(const Charge& charge, base::TimePoint now) const;

  // Resets a key to the state of a fresh key, and lifts its penalty. Afterwards, refund() and settle() ignore
  // the key's charges that were made at `now` or earlier. Returns true if the key had a slot or a penalty.
  // Otherwise the key is fresh or uses the shared overflow cell, which stays unchanged. REQUIRES: the key
  // holds no permits (limit::holds).
  bool forget(const Key& key, base::TimePoint now, HybridTimestamp* timestamp = nullptr);
  // Returns true if the key has a slot in the table, or violations. Any other key is fresh or uses the shared
  // overflow cell.
  [[nodiscard]] bool has_state(const Key& key) const;

  // Evicts drained keys from `buckets` buckets of the hash table, from where the last call stopped. Also
  // removes penalties that are no longer needed. Returns the number of evicted keys.
  std::size_t sweep(base::TimePoint now, std::size_t buckets);

  // For snapshots (limit/snapshot.hpp). visit() calls `see` for every key that is live at `now` and holds no
  // permits. Charges that other threads make during the call may be missing. REQUIRES: `rules` are the rules
  // of all keys, by RuleIndex.
  void visit(base::TimePoint now, std::span<const SavedRule> rules,
             const std::function<void(const SavedKey&)>& see) const;
  // Returns the overflow cells (states that keys without a slot share) that are not yet fresh again at `now`.
  // Leaves out those with permits.
  [[nodiscard]] std::vector<SharedCell> shared_cells(base::TimePoint now) const;
  [[nodiscard]] std::vector<SavedPenalty> penalties(base::TimePoint now) const;
  // Restores a key from a snapshot. Returns false if the table has no slot for the key. If the key already
  // has a slot in the table, leaves that slot's state unchanged. `cost_bits` must be
  // SavedRule::log_cost_bits() of the rule. The second form restores a shared overflow cell. REQUIRES: the
  // saved state belongs to a limiter of saved.rule.
  bool restore(const SavedKey& saved, unsigned cost_bits, base::TimePoint now);
  void restore(const SharedCell& shared);
  // Restores the violations and penalties of a key. Returns false if there is no room. If the table has
  // violations or penalties of the key already, leaves these unchanged.
  bool restore(const SavedPenalty& saved);

  // For upgrades, in which another process also counts the permits of this process. watch_permits() reports
  // the present permits of each key to `see`, and after that every change, in order. Shared overflow cells
  // are not reported. Any thread may call `see`, under the lock of a shard: `see` must be quick, must not
  // call the table and must not throw. A new observer replaces the previous one. REQUIRES: `rules` are the
  // rules of all keys, by RuleIndex; no reload begins while permits are watched.
  using PermitObserver = std::function<void(const PermitDelta&)>;
  void watch_permits(std::span<const SavedRule> rules, PermitObserver see);
  void unwatch_permits();
  // Charges permits that another process holds, beyond the limit if necessary. The permits count until
  // release(). Returns true if the shared overflow cell counts them (Outcome::overflow). REQUIRES:
  // limit::holds(*charge.limiter).
  [[nodiscard]] bool hold(const Charge& charge, base::TimePoint now);

  // A rule, and the RuleIndex that stands for it. Keeps a reference to the rule.
  struct DefinedRule {
    RuleIndex index;
    const SavedRule& rule;
  };
  // Declares that each RuleIndex stands for its rule from now on. Must be called before the first charge
  // under the index. Only one thread may call this function; other threads may charge at the same time. The
  // limiters must outlive the table.
  //
  // For reloads: keys of the same rule may still have the index of an earlier version. The next request with
  // such a key converts the key's state (limit/rescale.hpp), or resets the state if it cannot be converted.
  // Each call visits all known rules in all shards, even if it declares one rule. So many rules must be
  // declared in one call.
  //
  // REQUIRES, if the index is in use: is_current(index), and counts_as(rule) is true for the old rule.
  void define_rules(std::span<const DefinedRule> rules, base::TimePoint now);
  void define_rule(RuleIndex index, const SavedRule& rule, base::TimePoint now) {
    define_rules(std::array{DefinedRule{index, rule}}, now);
  }
  // Declares that `index` stands for `rule`, the version of the rule that an earlier process used (from a
  // snapshot). All other versions of the rule count as newer. Returns true if a present rule takes over keys
  // of the old version. The limiters must outlive the table.
  [[nodiscard]] bool define_former_rule(RuleIndex index, const SavedRule& rule);
  // Returns true if `index` is in use, and no later version of its rule has reset the keys.
  [[nodiscard]] bool is_current(RuleIndex index) const;
  // Declares that the rules of these indexes no longer exist: no charge uses the indexes any more.
  // migrate_cells() evicts the rules' keys.
  void forget_rules(const std::vector<RuleIndex>& indexes);
  // Evicts the keys of rules that no longer exist, and keys whose rule has another algorithm now. Converts
  // the states of keys that no request has used since the reload, but only if their rule has a single
  // limiter. With several limiters, a state does not say to which limiter it belongs. Locks one shard at a
  // time. So a charge waits for at most one shard, which has some 4,000 keys in a table of a million.
  void migrate_cells(base::TimePoint now);
  // Frees the indexes for other rules. REQUIRES: no key and no charge uses these indexes any more.
  void retire_rules(const std::vector<RuleIndex>& indexes);

  struct Stats {
    std::uint64_t keys = 0;              // slots in use, including drained keys that no sweep has evicted yet
    std::uint64_t slots = 0;             // all slots of the table
    std::uint64_t overflowed = 0;        // charges to shared overflow cells so far
    std::uint64_t overflow_refused = 0;  // enforced charges that were rejected by an overflow cell, or by a
                                         // slot that began as a copy of one
    std::uint64_t log_chunks = 0;        // all chunks of the log store, of 64 bytes each
    std::uint64_t log_chunks_used = 0;   // chunks in use
    std::uint64_t log_merged = 0;        // admissions so far that found no free chunk in the log store
    std::uint64_t penalty_keys = 0;      // keys with violations or penalties that no sweep has removed yet
    std::uint64_t violations_lost = 0;   // violations so far that found no room, and were not counted
    // Element i: the number of keys whose last charge had the RuleIndex i.
    std::vector<std::uint64_t> keys_by_rule = std::vector<std::uint64_t>(kMaxRules);
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::limit
