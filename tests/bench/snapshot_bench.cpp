// Measures how long it takes to save and restore a million keys when weir stops and starts, without the disk.
#include "weir/limit/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace weir::limit {
namespace {

constexpr std::uint64_t kKeys = 1'000'000;
constexpr base::TimePoint kNow{base::Duration{1'700'000'000'000'000}};

const Limiter& daily() {
  static const Limiter limiter = FixedWindow::make({5, base::Duration{86'400'000'000}}).value();
  return limiter;
}
const std::vector<SavedRule>& rules() {
  static const std::vector<SavedRule> rules = {{.name = "r", .variants = {{1, 1}}, .limiters = {&daily()}}};
  return rules;
}

std::string saved() {
  KeyTable table(kKeys);
  Outcome outcome;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    base::SipHash128 hash({});
    hash.part(i);
    const Charge charge{hash.digest(), &daily()};
    table.charge({&charge, 1}, kNow, {&outcome, 1});
  }
  std::string bytes;
  write_snapshot(table, {{}, kNow}, rules(), [&](std::string_view more) { bytes += more; });
  return bytes;
}

const std::string& bytes() {
  static const std::string bytes = saved();
  return bytes;
}

ByteSource source() {
  return [left = std::string_view(bytes())](std::span<char> into) mutable {
    const auto count = std::min(into.size(), left.size());
    std::memcpy(into.data(), left.data(), count);
    left.remove_prefix(count);
    return count;
  };
}

void snapshot_check(benchmark::State& state) {
  bytes();
  for (auto _ : state) benchmark::DoNotOptimize(check_snapshot(source(), rules()));
}

void snapshot_restore_and_write(benchmark::State& state) {
  bytes();
  for (auto _ : state) {
    KeyTable table(kKeys);
    benchmark::DoNotOptimize(restore_snapshot(source(), rules(), {kNow}, table));
    std::size_t size = 0;
    write_snapshot(table, {{}, kNow}, rules(), [&](std::string_view more) { size += more.size(); });
    if (size != bytes().size()) state.SkipWithError("something was lost");
  }
}
BENCHMARK(snapshot_check)->Unit(benchmark::kMillisecond);
BENCHMARK(snapshot_restore_and_write)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::limit
