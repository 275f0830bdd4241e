// Fuzzes the reader of snapshots with the given bytes. Afterwards corrects the digest of these bytes and
// reads them again, to reach the code behind the digest check. The table must accept what the reader accepts,
// write it again, and release its memory.
#include "fuzz/input.hpp"

#include "weir/limit/snapshot.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace weir::fuzz {
namespace {

using limit::KeyTable;
using limit::SavedRule;

limit::ByteSource source_of(std::string_view bytes) {
  return [bytes](std::span<char> into) mutable {
    const auto count = std::min(into.size(), bytes.size());
    if (count != 0) std::memcpy(into.data(), bytes.data(), count);
    bytes.remove_prefix(count);
    return count;
  };
}

// Returns the rules of the fuzzer's seed snapshots: a token bucket, a sliding log with exact times, and a
// sliding log with buckets. The parameters of the last rule differ from those in the seeds. So the table also
// stores the rule's former version, as after a reload.
const std::vector<SavedRule>& rules() {
  static const auto kMinute = base::Duration(60'000'000);
  static const std::vector<limit::Limiter> kLimiters = {limit::TokenBucket::make({5, kMinute}, 5).value(),
                                                        limit::SlidingLog::make({50, kMinute}).value(),
                                                        limit::SlidingLog::make({50, kMinute}, 10).value()};
  static const std::vector<SavedRule> kRules = {
      {.name = "a", .variants = {{1, 1, 0, &kLimiters[0]}}, .limiters = {&kLimiters[0]}},
      {.name = "b", .variants = {{1, 1, 0, &kLimiters[1]}}, .limiters = {&kLimiters[1]}},
      {.name = "c", .variants = {{1, 1, 0, &kLimiters[2]}}, .limiters = {&kLimiters[2]}}};
  return kRules;
}

std::string with_its_digest(std::string_view bytes) {
  std::string whole(bytes.substr(0, bytes.size() / 8 * 8));
  base::SipHash128 hash({});
  for (std::size_t at = 0; at < whole.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, whole.data() + at, sizeof word);
    hash.part(word);
  }
  const auto digest = hash.digest();
  whole.append(reinterpret_cast<const char*>(&digest.lo), 8);
  whole.append(reinterpret_cast<const char*>(&digest.hi), 8);
  return whole;
}

void run(std::string_view bytes) {
  const auto checked = limit::check_snapshot(source_of(bytes), rules());
  std::deque<limit::FormerRule> former;  // must outlive the table
  KeyTable table(64);
  for (std::size_t i = 0; i < rules().size(); ++i)
    table.define_rule(static_cast<limit::RuleIndex>(i), rules()[i], base::TimePoint{});
  const auto adopt = [&](const limit::FormerRule& rule) -> std::optional<limit::RuleIndex> {
    if (rules().size() + former.size() == limit::kMaxRules) return std::nullopt;
    const auto index = static_cast<limit::RuleIndex>(rules().size() + former.size());
    former.push_back(rule);
    return table.define_former_rule(index, former.back().rule) ? std::optional(index) : std::nullopt;
  };
  const auto restored = limit::restore_snapshot(source_of(bytes), rules(), {base::TimePoint{}}, table, adopt);
  require(checked.has_value() == restored.has_value(), "what is accepted can be restored");
  if (!checked) return require(!checked.error().message.empty(), "a refusal says why");
  const auto stats = table.stats();
  require(stats.keys <= restored->keys, "no key comes from nowhere");
  require(restored->keys + restored->drained + restored->changed + restored->left_out == checked->keys,
          "every key is accounted for");

  auto all = rules();
  for (const auto& each : former) all.push_back(each.rule);
  table.migrate_cells(base::TimePoint{});
  std::string again;
  limit::write_snapshot(table, {checked->names, {}}, all, [&](std::string_view more) { again += more; });
  require(limit::check_snapshot(source_of(again), rules()).has_value(), "what was restored can be saved");
  constexpr auto kEnd = base::TimePoint(base::Duration((std::int64_t{1} << 55) - 2));
  table.sweep(kEnd, 1'000);
  require(table.stats().log_chunks_used == 0, "logs give their memory back");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  weir::fuzz::run(input);
  weir::fuzz::run(weir::fuzz::with_its_digest(input));
  return 0;
}
