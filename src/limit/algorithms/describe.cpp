// Descriptions of limiters for people.
#include "weir/base/units.hpp"
#include "weir/limit/limiter.hpp"

namespace weir::limit {

namespace {

struct Name {
  const char* operator()(const TokenBucket&) const { return "token_bucket"; }
  const char* operator()(const Gcra&) const { return "gcra"; }
  const char* operator()(const LeakyBucket&) const { return "leaky_bucket"; }
  const char* operator()(const SteppedBucket&) const { return "token_bucket"; }
  const char* operator()(const FixedWindow&) const { return "fixed_window"; }
  const char* operator()(const SlidingWindow&) const { return "sliding_window"; }
  const char* operator()(const SlidingLog& l) const {
    return l.is_exact() ? "sliding_log" : "sliding_window";
  }
  const char* operator()(const Concurrency&) const { return "concurrency"; }
  const char* operator()(const AdaptiveConcurrency&) const { return "adaptive_concurrency"; }
};

std::string paced(const GcraCore& gcra_core, const char* what, std::uint64_t room) {
  return to_string(gcra_core.rate()) + ", " + what + " " + std::to_string(room);
}

struct Numbers {
  std::string operator()(const TokenBucket& l) const { return paced(l.gcra_core(), "burst", l.quota()); }
  std::string operator()(const Gcra& l) const { return paced(l.gcra_core(), "burst", l.quota() - 1); }
  std::string operator()(const LeakyBucket& l) const {
    auto line = paced(l.gcra_core(), "queue", l.quota());
    if (l.gcra_core().max_wait() != base::kForever)
      line += ", max_wait " + base::to_string(l.gcra_core().max_wait());
    return line;
  }
  std::string operator()(const SteppedBucket& l) const {
    return to_string(l.rate()) + " stepwise, burst " + std::to_string(l.quota());
  }
  std::string operator()(const FixedWindow& l) const {
    if (l.align() == FixedWindow::Align::Epoch) return to_string(l.rate());
    constexpr const char* kUnits[] = {"", "/day", "/month", "/week"};  // in the order of FixedWindow::Align
    return std::to_string(l.quota()) + kUnits[static_cast<std::size_t>(l.align())] + " by the calendar of " +
           l.calendar()->zone();
  }
  std::string operator()(const SlidingWindow& l) const { return to_string(l.rate()); }
  std::string operator()(const SlidingLog& l) const {
    return to_string(l.rate()) + (l.is_exact() ? "" : ", " + std::to_string(l.buckets()) + " buckets");
  }
  std::string operator()(const Concurrency& l) const { return std::to_string(l.quota()) + " in flight"; }
  std::string operator()(const AdaptiveConcurrency& l) const {
    return std::to_string(l.min()) + " to " + std::to_string(l.quota()) + " in flight";
  }
};

}  // namespace

const char* algorithm_name(const Limiter& limiter) noexcept {
  return std::visit(Name{}, limiter);
}

std::string describe(const Limiter& limiter) {
  return std::string(algorithm_name(limiter)) + " " + std::visit(Numbers{}, limiter);
}

}  // namespace weir::limit
