// Writes the live keys of a table as bytes and reads them back, so that a daily quota survives a restart.
// Pure: the caller moves the bytes (server/process/snapshot_file.hpp).
//
// Words of 64 bits, little endian:
// * head: "weirkeys" | version | saved_at | machine_at | k0 | k1
// * rules: their number, then for each rule its name, limiters and variants
// * a name: its length | its octets
// * a limiter: algorithm | its parameters
// * a variant: name | numbers | limiter ID | number of its limiter
// * shared cells: their number, then for each: rule | name of its variant | fingerprint of its limiter | cell
// * penalties: their number, then for each: key | forgotten_at | end | violations | begins
// * violations, begins: their number | their times
// * a key without a log: drained_at, log?, rule (one word) | key | cell
// * a key with a log: drained_at, log?, rule (one word) | key | number of entries | mark and cost of each
// * end: a word of ones | number of keys | digest of all words before it
//
// A snapshot keeps:
// * The secret key of client names (k0, k1). Without this key no client would find its state after a restart.
//   A person who knows this key can choose clients that fill one bucket of the table. So the key is not
//   derived from key_secret, which many weirs and perhaps many people know. A snapshot contains the key, so
//   only the owner may read the file.
// * All instants, by the clock that limits use; and the time of saving, by that clock and by the machine's
//   clock. A restore shifts all instants to its own clock (shift_of, src/limit/snapshot/time_shift.hpp). The
//   machine's clock tells the restore how much time has passed since the saving.
// * Violations and penalties, if there are any.
// * Cells of rules with unchanged limiters (SavedRule). Cells of changed rules are converted as after a
//   reload: a restore gives the old version of the rule a RuleIndex of its own.
// A snapshot does not keep permits, because their requests ended with the process.
//
// A snapshot has the lowest version that can hold its contents, so that an earlier weir can read the snapshot
// if possible. Version 5 lacks penalties. Versions 5 and 6 hold at most 256 rules, including old versions of
// rules.
//
// The digest (SipHash without a secret) detects damage. It does not detect forgery, but only the owner of the
// file could forge it.
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
  base::SipKey names;        // the secret key under which client names are computed
  base::TimePoint saved_at;  // the time of writing, by the clock that limits use
  std::uint64_t keys = 0;    // number of keys; not used by write_snapshot()
  // The time of writing, by the machine's clock; absent if both clocks agreed.
  std::optional<base::TimePoint> machine_at{};
};

// Clocks that differ by at most this much are treated as equal.
inline constexpr base::Duration kClocksAgree{2'000'000};
// Returns the duration to add to the instants of a snapshot that a process restores. `now`: the machine's
// time when the clock of that process starts. The result is `machine_at` − `saved_at`, or zero if they
// differ by at most kClocksAgree. If `now` is before `machine_at`, the machine's clock was set back. Then
// `now` replaces `machine_at`, as if no time had passed.
[[nodiscard]] base::Duration shift_of(const Snapshot& snapshot, base::TimePoint now) noexcept;

// The clock of the process that restores a snapshot.
struct RestoreAt {
  base::TimePoint now;      // the present time, by the clock of this process
  base::Duration shift{0};  // the duration to add to all instants
};

// Receives the bytes of a snapshot, piece by piece. write_snapshot() passes on the sink's exceptions.
using ByteSink = std::function<void(std::string_view)>;
// Fills a buffer with the next bytes of a snapshot and returns their number. A number below the buffer's size
// means that the bytes have ended. check_snapshot() and restore_snapshot() pass on the source's exceptions.
using ByteSource = std::function<std::size_t(std::span<char>)>;

// Writes a snapshot of the table and returns the number of keys written. Other threads may charge the table
// during the call; the snapshot may lack their charges. REQUIRES: `rules` are the rules of the table's keys,
// by RuleIndex.
std::uint64_t write_snapshot(const KeyTable& table, const Snapshot& snapshot,
                             std::span<const SavedRule> rules, const ByteSink& sink);

// Checks a snapshot. Reads all bytes in bounded memory, and trusts nothing until the digest has matched.
// Errors read "ends early", "is damaged: …" or "has version 1, but this weir reads 4 to 7".
[[nodiscard]] base::Result<Snapshot> check_snapshot(const ByteSource& source,
                                                    std::span<const SavedRule> rules);

struct Restored {
  std::uint64_t keys = 0;     // keys restored to the table
  std::uint64_t drained = 0;  // keys that were fresh again before the restore
  std::uint64_t changed = 0;  // keys of rules that no longer exist, or for which `adopt` returned nullopt
  // Keys for which a new, smaller table had no slot, because it was full of live keys. These keys use the
  // overflow cells (states that keys without a slot share), which start fresh. Also counts keys whose
  // penalties did not fit into the memory for penalties.
  std::uint64_t left_out = 0;
};

// Called for a rule whose limiters have changed since the snapshot. Must return a RuleIndex for the old
// version of the rule, or nullopt if the rule's keys start with nothing used.
using Adopt = std::function<std::optional<RuleIndex>(const FormerRule&)>;

// Adds the keys of a snapshot to the table. REQUIRES: check_snapshot accepted the same bytes with the same
// rules. If restoring still fails, the table keeps the keys that were read before the error.
[[nodiscard]] base::Result<Restored> restore_snapshot(const ByteSource& source,
                                                      std::span<const SavedRule> rules, const RestoreAt& at,
                                                      KeyTable& table, const Adopt& adopt = {});

}  // namespace weir::limit
