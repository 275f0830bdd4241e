// What the cells of each RuleIndex mean. A rule whose numbers a reload changed has a new index, so a slot
// always says in which numbers its cell is; a charge that meets a cell of another index asks here how the two
// go together. Cells only move on to newer readings: a request that began under an older one is charged under
// the newest that its key has met.
//
// Where a variant of a rule is given another algorithm its cells begin anew, and with them another *life*:
// what is charged in a life is given back in that life alone. An algorithm that comes again is another life
// as well,
//
//   reload      limit        index   life
//   1           5/day, log   0       1
//   2           9/day, log   1       1      cells move on with their share
//   3           9/day, gcra  2       2      cells begin anew
//   4           5/day, log   3       3      so they do again: not under index 0, which requests may still
//   name
//
// and so is a rule that was gone.
//
// Owned by the key table. Any thread may ask; one at a time introduces and forgets. Its lock is the last.
#pragma once

#include "limit/table/quota.hpp"

#include "weir/limit/charge.hpp"
#include "weir/limit/saved.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace weir::limit {

class Readings {
 public:
  // A charge, and a cell of another reading of its rule.
  struct Meeting {
    bool cell_is_newer = false;
    bool one_life = false;             // of the charge's reading and the cell's
    const Limiter* of_cell = nullptr;  // the limiter of the charge's variant in the cell's reading; null: it
                                       // has none
  };

  // Nullopt: they are not two readings of one rule, as far as is known.
  [[nodiscard]] std::optional<Meeting> meeting(RuleIndex cell, const Charge& charge) const;

  // REQUIRES of an index that is known: goes_on(index), and that it counts as `rule` does
  // (SavedRule::counts_as).
  void introduce(RuleIndex index, const SavedRule& rule);
  // Older than all that is introduced. False: no reading of that name goes on with any of its variants.
  [[nodiscard]] bool introduce_former(RuleIndex index, const SavedRule& rule);
  // Whether it is known, and none of its variants has begun another life since.
  [[nodiscard]] bool goes_on(RuleIndex index) const;
  // Its cells are to be forgotten where they are met.
  void forget(RuleIndex index);
  void retire(RuleIndex index);

  // What is to become of cells that nobody asks for.
  struct Fate {
    bool forgotten = false;         // their rule is gone, or its cells have begun anew
    RuleIndex next = 0;             // of a rule with one limiter alone:
    const Limiter* from = nullptr;  // null: nothing
    const Limiter* to = nullptr;
  };
  [[nodiscard]] std::array<Fate, kMaxRules> fates() const;

  // All readings of a rule count with its newest one, which alone is entitled to a part.
  [[nodiscard]] Accounts accounts() const;

  // The reading that the next one of a rule follows; null: it has none.
  [[nodiscard]] const SavedRule* newest(const std::string& name, RuleIndex& index) const;

 private:
  using Life = std::uint64_t;  // a number that no other has; 0: none
  struct Known {
    SavedRule rule;
    std::vector<Life> lives;  // of its variants
    std::uint64_t age;        // the greater, the newer
    bool forgotten = false;

    [[nodiscard]] Life life_of(std::uint64_t variant) const noexcept;
  };
  struct Latest {  // of a variant
    const Limiter* limiter = nullptr;
    Life life = 0;
  };

  [[nodiscard]] const std::optional<Known>* newest_of(const std::string& name) const;
  [[nodiscard]] std::size_t lives_left(const Known& known) const;
  void end_lives(const std::string& rule);
  static void lead_on(const Known& older, const Known& newer, RuleIndex index, Fate& fate);

  mutable std::shared_mutex mutex_;
  std::array<std::optional<Known>, kMaxRules> known_;
  std::map<std::string, std::map<std::uint64_t, Latest>> latest_;  // of rules that are known, by variant
  std::uint64_t introduced_ = 0;
  Life lives_begun_ = 0;
};

}  // namespace weir::limit
