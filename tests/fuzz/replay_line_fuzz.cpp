// Fuzzes lines of the access log as `weir replay` reads them. Any text must be read, or be rejected with a
// reason. The result for a line must not depend on the previous line.
#include "fuzz/input.hpp"

#include "weir/replay/log_line.hpp"

#include <cmath>
#include <string_view>

namespace weir::fuzz {
namespace {

// The parts of a parsed line that the fuzz target compares.
struct Summary {
  bool usable = false;
  replay::Unusable why{};
  std::uint64_t run = 0;
  unsigned status = 0;
  std::size_t rules = 0, amendments = 0;
  bool operator==(const Summary&) const = default;
};

Summary read(replay::LogLineReader& reader, std::string_view text) {
  Summary summary;
  const auto* line = reader.read(text, summary.why);
  if (line == nullptr) {
    require(static_cast<std::size_t>(summary.why) < replay::kUnusable, "a refusal has a reason");
    return summary;
  }
  summary = {true, {}, line->run, line->status, line->rules.size(), line->amendments.size()};
  if (line->is_reset) return summary;
  require(line->total.count() >= 0 && line->upstream.count() >= 0, "no request ends before it began");
  require(!line->load || std::isfinite(*line->load), "a load is a number");
  for (const auto& rule : line->rules)
    require(!rule.rule.empty() && rule.cost <= limit::kMaxCost, "a charge names its rule and a cost");
  return summary;
}

void run(std::string_view input) {
  const auto end = input.find('\n');
  const auto first = input.substr(0, end);
  const auto second = end == std::string_view::npos ? std::string_view{} : input.substr(end + 1);
  replay::LogLineReader used, fresh;
  (void)read(used, first);
  require(read(used, second) == read(fresh, second), "a line is read the same whatever came before it");
  (void)replay::parse_time(first);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
