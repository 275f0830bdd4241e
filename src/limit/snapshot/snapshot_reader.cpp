#include "limit/snapshot/snapshot_limiter.hpp"
#include "limit/snapshot/time_shift.hpp"

#include "weir/limit/rescale.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <string>

namespace weir::limit {

namespace {

base::TimePoint instant_of(std::uint64_t micros) noexcept {
  return base::TimePoint(base::Duration(static_cast<base::Duration::rep>(micros)));
}

// Reads a snapshot as untrusted input: checks that every number of items is within its bound, every index in
// its range, and every log in order. Stops at the first fault.
class Reader {
 public:
  using SeeShared = std::function<void(const SharedCell&)>;
  using SeeKey = std::function<void(const SavedKey&, unsigned cost_bits)>;
  using SeePenalty = std::function<void(const SavedPenalty&)>;

  Reader(const ByteSource& source, std::span<const SavedRule> rules, const RestoreAt& at, const Adopt& adopt)
      : in_(source), rules_(rules), at_(at.now), shift_{at.shift, at.now}, adopt_(adopt) {}

  // Calls `see_shared` for each overflow cell (a state that keys without a slot share). Calls `see_penalty`
  // for each key with violations, and `see_key` for each key. Leaves out states of rules that no longer exist
  // or that `adopt` refused. Converts overflow cells to the limiters of the present rules.
  base::Result<Snapshot> read(const SeeShared& see_shared, const SeePenalty& see_penalty,
                              const SeeKey& see_key);
  [[nodiscard]] std::uint64_t changed() const noexcept { return changed_; }

 private:
  // How to interpret the keys of one rule of the snapshot.
  struct Meaning {
    std::optional<RuleIndex> index;  // nullopt if the rule no longer exists or was not adopted
    const SavedRule* rule;           // the version of the rule that can read the keys' states
    const SavedRule* next;           // the version to which the states are converted; null: no conversion
  };

  void fail(std::string what) {
    if (fault_.empty()) fault_ = in_.ended() ? "ends early" : std::move(what);
  }
  [[nodiscard]] bool good() const noexcept { return fault_.empty() && !in_.ended(); }
  std::uint64_t take_count(std::uint64_t most, const char* of);
  void read_head();
  void read_rules();
  FormerRule read_rule();
  [[nodiscard]] Meaning meaning_of(FormerRule older);
  void read_shared(const SeeShared& see);
  void convert_shared(const SharedCell& shared, std::uint64_t variant, const SavedRule& next,
                      const SeeShared& see);
  void read_penalties(const SeePenalty& see);
  void read_times(std::vector<base::TimePoint>& times, std::uint64_t most);
  [[nodiscard]] base::TimePoint take_instant();
  void read_keys(const SeeKey& see);
  void read_key(std::uint64_t first, const SeeKey& see);
  void read_log(SavedKey& saved, unsigned cost_bits);

  WordReader in_;
  std::span<const SavedRule> rules_;
  base::TimePoint at_;
  TimeShift shift_;
  const Adopt& adopt_;
  std::vector<Meaning> meanings_;  // by the rule's number in the snapshot
  std::deque<FormerRule> former_;  // the old versions of rules that were removed or changed
  Snapshot snapshot_{};
  std::uint64_t version_ = 0;
  std::uint64_t changed_ = 0;
  std::string fault_;
};

std::uint64_t Reader::take_count(std::uint64_t most, const char* of) {
  const std::uint64_t count = in_.take();
  if (count <= most) return count;
  fail(std::string("is damaged: it has too many ") + of);
  return 0;
}

void Reader::read_head() {
  if (in_.take() != kSnapshotMagic) return fail("is not a snapshot");
  const std::uint64_t version = in_.take();
  if (version < kOneClockVersion || version > kSnapshotVersion)
    return fail("has version " + std::to_string(version) + ", but this weir reads " +
                std::to_string(kOneClockVersion) + " to " + std::to_string(kSnapshotVersion));
  version_ = version;
  const std::uint64_t saved_at = in_.take();
  const std::uint64_t machine_at = version == kOneClockVersion ? saved_at : in_.take();
  if (saved_at > kLatest || machine_at > kLatest) return fail("is damaged: its time is impossible");
  snapshot_.saved_at = instant_of(saved_at);
  snapshot_.machine_at = instant_of(machine_at);
  snapshot_.names.k0 = in_.take();
  snapshot_.names.k1 = in_.take();
}

FormerRule Reader::read_rule() {
  FormerRule former{
      .rule = {.name = in_.take_text(take_count(kLongestRuleName, "letters in a name")), .variants = {}},
      .limiters = {}};
  auto& [rule, limiters] = former;
  const std::uint64_t count = take_count(kMostLimiters, "limiters of a rule");
  for (std::uint64_t i = 0; i < count && good(); ++i) {
    auto limiter = take_limiter(in_);
    if (!limiter) {
      fail("is damaged: a limiter has impossible parameters");
      return former;
    }
    limiters.emplace_back(std::move(*limiter));
    rule.limiters.push_back(limiters.back().get());
  }
  const std::uint64_t variants = take_count(kMostVariants, "variants of a rule");
  for (std::uint64_t i = 0; i < variants && good(); ++i) {
    const std::uint64_t name = in_.take();
    const std::uint64_t numbers = in_.take();
    const auto limiter_id = static_cast<LimiterId>(in_.take());
    const std::uint64_t place = take_count(limiters.size(), "limiters of a variant");
    rule.variants.push_back({name, numbers, limiter_id, place != 0 ? rule.limiters[place - 1] : nullptr});
  }
  return former;
}

Reader::Meaning Reader::meaning_of(FormerRule older) {
  const auto named = [&](const SavedRule& rule) { return rule.name == older.rule.name; };
  const auto found = std::find_if(rules_.begin(), rules_.end(), named);
  if (found != rules_.end() && found->reads(older.rule))
    return {static_cast<RuleIndex>(found - rules_.begin()), &*found, nullptr};
  const auto& kept = former_.emplace_back(std::move(older));
  if (found == rules_.end() || !adopt_) return {std::nullopt, &kept.rule, nullptr};
  return {adopt_(kept), &kept.rule, &*found};
}

void Reader::read_rules() {
  const std::uint64_t count = take_count(kMaxRules, "rules");
  for (std::uint64_t i = 0; i < count && good(); ++i) {
    auto older = read_rule();
    if (good()) meanings_.push_back(meaning_of(std::move(older)));
  }
}

void Reader::read_shared(const SeeShared& see) {
  const std::uint64_t count = take_count(kMostSharedCells, "shared cells");
  for (std::uint64_t i = 0; i < count && good(); ++i) {
    const std::uint64_t rule = in_.take();
    const std::uint64_t variant = in_.take();
    const auto units = in_.take_digest();
    const Cell cell = in_.take_cell();
    if (rule >= meanings_.size()) return fail("is damaged: it refers to a rule that it does not contain");
    const auto& [index, is, next] = meanings_[rule];
    if (!index) continue;
    const auto named = std::find_if(is->variants.begin(), is->variants.end(),
                                    [&](const SavedRule::Variant& v) { return v.name == variant; });
    const auto of = std::find_if(is->limiters.begin(), is->limiters.end(),
                                 [&](const Limiter* limiter) { return fingerprint(*limiter) == units; });
    if (named == is->variants.end() || of == is->limiters.end()) continue;
    const SharedCell shared{*index, named->limiter_id, **of, shifted(**of, cell, shift_)};
    if (next == nullptr)
      see(shared);
    else
      convert_shared(shared, variant, *next, see);
  }
}

// Converts an overflow cell (a state that keys without a slot share) to the limiters of the rule `next`, and
// calls `see` with the result. The state of a single key is converted later, by the key's next charge. But
// charges find an overflow cell only by the present RuleIndex of their rule. So an overflow cell must be
// converted now.
void Reader::convert_shared(const SharedCell& shared, std::uint64_t variant, const SavedRule& next,
                            const SeeShared& see) {
  const auto index = static_cast<RuleIndex>(&next - rules_.data());
  for (const auto& is : next.variants)
    if (is.name == variant && is.limiter != nullptr)
      see({index, is.limiter_id, *is.limiter, rescaled(shared.units, shared.cell, *is.limiter, at_)});
}

// Reads an instant, and shifts it to the clock of this process.
base::TimePoint Reader::take_instant() {
  const std::uint64_t micros = in_.take();
  if (micros > kLatest) fail("is damaged: a penalty has an impossible time");
  return good() && micros != 0 ? std::max(instant_of(micros) + shift_.by, base::TimePoint{})
                               : base::TimePoint{};
}

void Reader::read_times(std::vector<base::TimePoint>& times, std::uint64_t most) {
  const std::uint64_t count = take_count(most, "times of a penalty");
  for (std::uint64_t i = 0; i < count && good(); ++i) times.push_back(take_instant());
}

void Reader::read_penalties(const SeePenalty& see) {
  if (version_ <= kNoPenaltyVersion) return;
  const std::uint64_t count = take_count(kMostPenalties, "penalties");
  for (std::uint64_t i = 0; i < count && good(); ++i) {
    SavedPenalty saved{.key = in_.take_digest(), .forgotten_at = take_instant(), .state = {}};
    saved.state.end = take_instant();
    read_times(saved.state.violations, kMostViolations);
    read_times(saved.state.begins, kMostBegins);
    if (good()) see(saved);
  }
}

// Reads a log and checks what the table requires. Entries must be in order and within one period. Each cost
// must fit the bits that a chunk has for it.
void Reader::read_log(SavedKey& saved, unsigned cost_bits) {
  const std::uint64_t count = take_count(SlidingLog::kMostExact, "entries in a log");
  if (count == 0) return fail("is damaged: a log is empty");
  const std::uint64_t bound = std::uint64_t{1} << (cost_bits != 0 ? cost_bits : 32);
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < count && good(); ++i) {
    const std::uint64_t mark = in_.take();
    const std::uint64_t cost = in_.take();
    const bool in_order = saved.log.empty() || mark > saved.log.back().mark;
    const bool costs = cost != 0 && cost < bound && (total += cost) <= SlidingLog::kMostTotal;
    if (!in_order || !costs) return fail("is damaged: a log is out of order");
    saved.log.push_back({mark, cost});
  }
  if (!good() || cost_bits == 0) return;
  const auto age = saved.log.back().mark - saved.log.front().mark;
  if (age >> (64 - cost_bits) != 0) fail("is damaged: a log is out of order");
}

void Reader::read_key(std::uint64_t first, const SeeKey& see) {
  const KeyWord& word = key_word_of(version_);
  const std::uint64_t drained_at = word.drained_at(first);
  const std::uint64_t rule = word.rule(first);
  SavedKey saved{.key = in_.take_digest(), .rule = 0, .drained_at = instant_of(drained_at)};
  if (drained_at > kLatest || rule >= meanings_.size())
    return fail("is damaged: a key has no valid rule or time");
  const Meaning& is = meanings_[rule];
  const unsigned cost_bits = is.rule->log_cost_bits();
  const bool is_log = word.is_log(first);
  if (is_log)
    read_log(saved, cost_bits);
  else
    saved.cell = in_.take_cell();
  if (!good()) return;
  if (is_log ? cost_bits == 0 : is.rule->keeps_logs_alone())
    return fail("is damaged: a key has another algorithm than its rule");
  if (!is.index) {
    ++changed_;
    return;
  }
  saved.rule = *is.index;
  move(saved, *is.rule, shift_);
  see(saved, cost_bits);
}

void Reader::read_keys(const SeeKey& see) {
  std::uint64_t keys = 0;
  std::uint64_t first = in_.take();
  for (; good() && first != kSnapshotEnd; first = in_.take(), ++keys) read_key(first, see);
  snapshot_.keys = in_.take();
  if (good() && snapshot_.keys != keys) fail("is damaged: its number of keys is wrong");
}

base::Result<Snapshot> Reader::read(const SeeShared& see_shared, const SeePenalty& see_penalty,
                                    const SeeKey& see_key) {
  read_head();
  if (good()) read_rules();
  if (good()) read_shared(see_shared);
  if (good()) read_penalties(see_penalty);
  if (good()) read_keys(see_key);
  if (good() && !in_.take_end()) fail("is damaged: its checksum is wrong");
  if (!good()) {
    fail("ends early");
    return base::Error{fault_};
  }
  return snapshot_;
}

}  // namespace

base::Duration shift_of(const Snapshot& snapshot, base::TimePoint now) noexcept {
  const auto shift = std::min(now, snapshot.machine_at.value_or(snapshot.saved_at)) - snapshot.saved_at;
  return std::chrono::abs(shift) <= kClocksAgree ? base::Duration{0} : shift;
}

base::Result<Snapshot> check_snapshot(const ByteSource& source, std::span<const SavedRule> rules) {
  const Adopt adopts_none;
  Reader reader(source, rules, {}, adopts_none);
  return reader.read([](const SharedCell&) {}, [](const SavedPenalty&) {}, [](const SavedKey&, unsigned) {});
}

base::Result<Restored> restore_snapshot(const ByteSource& source, std::span<const SavedRule> rules,
                                        const RestoreAt& at, KeyTable& table, const Adopt& adopt) {
  Restored restored;
  const auto now = at.now;
  Reader reader(source, rules, at, adopt);
  const auto restore_penalty = [&](const SavedPenalty& saved) {
    if (saved.forgotten_at > now && !table.restore(saved)) ++restored.left_out;
  };
  const auto read = reader.read([&](const SharedCell& shared) { table.restore(shared); }, restore_penalty,
                                [&](const SavedKey& saved, unsigned cost_bits) {
                                  if (saved.drained_at <= now)
                                    ++restored.drained;
                                  else if (table.restore(saved, cost_bits, now))
                                    ++restored.keys;
                                  else
                                    ++restored.left_out;
                                });
  if (!read) return read.error();
  restored.changed = reader.changed();
  return restored;
}

}  // namespace weir::limit
