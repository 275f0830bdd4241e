// The versions of each rule's limiters. If a reload changes the limits of a rule, the rule gets a new
// RuleIndex. So the index in a slot says which version of the limiters can read the slot's cell (its key's
// state). If a charge finds a cell with another index, this class says how the two versions relate. Cells are
// only converted to newer versions. A request that began under an older version is charged under the newest
// version in which its key was ever charged.
//
// If a variant of a rule (the rule itself, a tier or an override) gets another algorithm, its cells start
// fresh in another *generation*. A charge is refunded only in its own generation. An algorithm that was
// removed and returns starts yet another generation:
//
// * reload 1, limit 5/day, log: index 0, generation 1
// * reload 2, limit 9/day, log: index 1, generation 1; cells are converted
// * reload 3, limit 9/day, gcra: index 2, generation 2; cells start anew
// * reload 4, limit 5/day, log: index 3, generation 3; cells start anew. Requests may still use index 0.
//
// A rule that was removed and returns also starts a new generation.
//
// Owned by the key table. Any thread may look up versions. Only one thread at a time may define and forget
// rules. This class's own lock is always taken last.
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

class LimiterVersions {
 public:
  // How a charge relates to its key's cell, which was charged under another version of the rule.
  struct Relation {
    bool cell_is_newer = false;
    bool same_generation = false;  // the charge and the cell are of the same generation
    // The limiter of the charge's variant (the rule itself, a tier or an override). It is from the version
    // under which the cell was charged; null if that version lacks the variant.
    const Limiter* of_cell = nullptr;
  };

  // Returns how the charge relates to a cell with the RuleIndex `cell`. Returns nullopt if `cell` and the
  // index of the charge do not belong to known versions of one rule.
  [[nodiscard]] std::optional<Relation> relation_to(RuleIndex cell, const Charge& charge) const;

  // Declares that `index` stands for `rule`. If `index` already stands for another version, REQUIRES that
  // is_current(index) is true, and that counts_as(rule) is true for the other version.
  void define_rule(RuleIndex index, const SavedRule& rule);
  // Declares that `index` stands for `rule`, a version that is older than all known versions. Declares
  // nothing and returns false if no known version can use the keys of any variant of `rule`.
  [[nodiscard]] bool define_former_rule(RuleIndex index, const SavedRule& rule);
  // Returns true if `index` is known, and no variant has changed its algorithm since `index` was defined.
  [[nodiscard]] bool is_current(RuleIndex index) const;
  // Declares that the rule of `index` no longer exists. A request or a sweep that finds a key of the rule
  // evicts the key.
  void forget(RuleIndex index);
  // Makes `index` unknown, so that define_rule() can give it to another rule. REQUIRES: no cell has the
  // index, and no charge uses it any more.
  void retire(RuleIndex index);

  // The action for the cells of one RuleIndex that no charge has used since a reload.
  struct CellAction {
    bool forgotten = false;  // evict the cells: the rule no longer exists, or its keys start fresh
    // The three members below are set only if the rule has one limiter and a newer version. `next`: the
    // RuleIndex of the newest version.
    RuleIndex next = 0;
    const Limiter* from = nullptr;  // the limiter to convert from; null: nothing to convert
    const Limiter* to = nullptr;
  };
  // Returns the action for each RuleIndex; the index of an element is the RuleIndex.
  [[nodiscard]] std::vector<CellAction> cell_actions() const;

  // Returns the quota accounts: each counts the slots or chunks that a rule holds (limit/table/quota.hpp).
  // All versions of a rule use the account of its newest version, which has a reserved part. The account of a
  // removed rule has no reserved part.
  [[nodiscard]] QuotaAccounts accounts() const;

  // Returns the newest version of a rule and sets `index` to its RuleIndex. Returns null if the rule is
  // unknown.
  [[nodiscard]] const SavedRule* newest(const std::string& name, RuleIndex& index) const;

 private:
  using Generation = std::uint64_t;  // a number that no other generation of any rule has; 0: no generation
  struct Version {
    SavedRule rule;
    std::vector<Generation> generations;  // the generation of each variant, in the order of rule.variants
    std::uint64_t age;                    // a higher number is newer
    bool forgotten = false;

    [[nodiscard]] Generation generation_of(std::uint64_t variant) const noexcept;
  };
  struct Latest {  // the latest limiter of a variant
    const Limiter* limiter = nullptr;
    Generation generation = 0;
  };

  [[nodiscard]] const std::optional<Version>* newest_of(const std::string& name) const;
  [[nodiscard]] std::size_t generations_left(const Version& known) const;
  void put(RuleIndex index, Version version);
  void end_generations(const std::string& rule);
  static void link_versions(const Version& older, const Version& newer, RuleIndex index, CellAction& action);

  mutable std::shared_mutex mutex_;
  std::array<std::optional<Version>, kMaxRules> versions_;
  // Higher than every RuleIndex that was ever in use.
  std::size_t used_ = Quota::kFirst;
  // The latest limiter of each variant: by the name of the rule, then by SavedRule::Variant::name (a digest).
  std::map<std::string, std::map<std::uint64_t, Latest>> latest_;
  std::uint64_t newest_age_ = 0;  // the `age` of the newest version; each new version gets the next number
  Generation generations_begun_ = 0;
};

}  // namespace weir::limit
