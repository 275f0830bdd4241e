// The live keys of a table as bytes, so that a daily quota survives a restart. Pure: whoever calls moves the
// bytes (server/process/snapshot_file.hpp).
//
//   words of 64 bits, little endian:
//   | "weirkeys" | version | saved_at | k0 | k1 |
//   | rules     | length of name, name | limiters | algorithm, its parameters | … |
//   |           | variants | name, numbers, ledger, which limiter | … | … |
//   | shared    | rule | name of its variant | fingerprint of its units, 2 | cell, 2 | … |
//   | drained_at, log?, rule | key, 2 | cell, 2                         | one for each key; or, of a log,
//   | drained_at, log?, rule | key, 2 | entries | mark, cost | … |      |
//   | all ones | keys | digest of all words before it, 2 |
//
// What outlives the process:
//  * The key that names are made under (k0, k1), without which no client would find its cell. It is not
//  derived
//    from key_secret: that is shared by many weirs and may be known to many people, and who knows the key can
//    aim clients at one bucket of the table. So the bytes are a secret; the file is its owner's alone.
//  * Instants by the clock that limits went by, and what that clock and the machine's showed. Whoever
//  restores
//    moves the instants to the clock of its own (shift_of, src/limit/snapshot/time_shift.hpp). The time in
//    between counts as passed, as the machine's clock tells it.
//  * Cells of rules whose numbers are the same as then (SavedRule), and those of a rule that has changed,
//    which move on with their share as after a reload: whoever restores gives the rule as it was then a
//    RuleIndex of its own.
//  * Not what is in flight: requests ended with the process.
//
// A digest (SipHash, not secret) tells damage; it is no proof against a forger, who had to be the owner.
#pragma once

#include "weir/limit/key_table.hpp"
#include "weir/limit/saved.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace weir::limit {

struct Snapshot {
  base::SipKey names;                           // the key of the table's names
  base::TimePoint saved_at;                     // by the clock that limits went by
  std::uint64_t keys = 0;                       // that it has; not for write_snapshot()
  std::optional<base::TimePoint> machine_at{};  // the same instant by the machine's clock; absent: the same
};

// Clocks that differ by no more count as one.
inline constexpr base::Duration kClocksAgree{2'000'000};
// Returns how far a snapshot's instants are to be moved by a process whose clock begins at `now`, as the
// machine's shows it. Zero where the clocks agree: then that process lets its time go on at `saved_at` at the
// earliest. Where the machine's clock was set back meanwhile, no time has passed.
[[nodiscard]] base::Duration shift_of(const Snapshot& snapshot, base::TimePoint now) noexcept;

// The clock of the process that restores a snapshot.
struct RestoreAt {
  base::TimePoint now;      // by its own clock
  base::Duration shift{0};  // by which instants are to be moved
};

// Takes the next bytes.
using ByteSink = std::function<void(std::string_view)>;
// Fills a buffer with the next bytes and says how many: fewer than it holds only at the end.
using ByteSource = std::function<std::size_t(std::span<char>)>;

// Returns how many keys it wrote. Any thread may use the table meanwhile; what it charges then may be
// missing. REQUIRES that the table's keys were charged by `rules`, in this order.
std::uint64_t write_snapshot(const KeyTable& table, const Snapshot& snapshot,
                             std::span<const SavedRule> rules, const ByteSink& sink);

// Reads everything, in bounded memory, and believes nothing before the digest was right. An error in words:
// "ends early", "is damaged: …", "is of version 1, this weir reads 4 and 5".
[[nodiscard]] base::Result<Snapshot> check_snapshot(const ByteSource& source,
                                                    std::span<const SavedRule> rules);

struct Restored {
  std::uint64_t keys = 0;     // that are in the table again
  std::uint64_t drained = 0;  // whose time had passed
  std::uint64_t changed = 0;  // of rules that are gone, or that nobody adopted
  // That found no room in a smaller table. It is full of live keys then, so they share their rules' overflow
  // cells: all of them together gain one fresh state a ledger.
  std::uint64_t left_out = 0;
};

// Takes in a rule that has other numbers now: the index that stands for it as it was. Nullopt: its keys begin
// anew.
using Adopt = std::function<std::optional<RuleIndex>(const FormerRule&)>;

// REQUIRES that check_snapshot accepted the same bytes with the same rules; else an error, and the table has
// what came before it.
[[nodiscard]] base::Result<Restored> restore_snapshot(const ByteSource& source,
                                                      std::span<const SavedRule> rules, const RestoreAt& at,
                                                      KeyTable& table, const Adopt& adopt = {});

}  // namespace weir::limit
