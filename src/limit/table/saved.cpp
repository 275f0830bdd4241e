#include "weir/limit/saved.hpp"

#include <algorithm>

namespace weir::limit {

namespace {

using base::SipHash128;

// Hashes all parameters that a step of the limiter uses.
struct Numbers {
  SipHash128& hash;

  void add(const Rate& rate) const noexcept {
    hash.part(rate.count);
    hash.part(static_cast<std::uint64_t>(rate.period.count()));
  }
  void add(const GcraCore& gcra_core) const noexcept {
    add(gcra_core.rate());
    hash.part(gcra_core.capacity());
    hash.part(static_cast<std::uint64_t>(gcra_core.max_wait().count()));
  }

  void operator()(const TokenBucket& l) const noexcept { add(l.gcra_core()); }
  void operator()(const Gcra& l) const noexcept { add(l.gcra_core()); }
  void operator()(const LeakyBucket& l) const noexcept { add(l.gcra_core()); }
  void operator()(const SteppedBucket& l) const noexcept {
    add(l.rate());
    hash.part(l.quota());
  }
  void operator()(const FixedWindow& l) const noexcept {
    add(l.rate());
    hash.part(static_cast<std::uint64_t>(l.align()));
    if (l.calendar() != nullptr) hash.part(l.calendar()->zone());
  }
  void operator()(const SlidingWindow& l) const noexcept { add(l.rate()); }
  void operator()(const SlidingLog& l) const noexcept {
    add(l.rate());
    hash.part(l.buckets());
  }
  void operator()(const Concurrency& l) const noexcept { hash.part(l.quota()); }
  void operator()(const AdaptiveConcurrency& l) const noexcept {
    hash.part(l.min());
    hash.part(l.quota());
  }
};

}  // namespace

base::Digest128 fingerprint(const Limiter& limiter) noexcept {
  SipHash128 hash({});
  hash.part(static_cast<std::uint64_t>(limiter.index()));
  std::visit(Numbers{hash}, limiter);
  return hash.digest();
}

unsigned SavedRule::log_cost_bits() const noexcept {
  for (const Limiter* limiter : limiters)
    if (const auto* log = std::get_if<SlidingLog>(limiter)) return log->cost_bits();
  return 0;
}

bool SavedRule::keeps_logs_alone() const noexcept {
  return !limiters.empty() && std::all_of(limiters.begin(), limiters.end(), [](const Limiter* limiter) {
    return std::holds_alternative<SlidingLog>(*limiter);
  });
}

bool SavedRule::reads(const SavedRule& older) const noexcept {
  return std::all_of(older.variants.begin(), older.variants.end(), [this](const Variant& was) {
    return std::none_of(variants.begin(), variants.end(),
                        [&](const Variant& is) { return is.name == was.name && is.numbers != was.numbers; });
  });
}

bool SavedRule::counts_as(const SavedRule& other) const noexcept {
  const auto alike = [](const Variant& a, const Variant& b) {
    if (a.name != b.name || a.limiter_id != b.limiter_id) return false;
    if (a.numbers == b.numbers) return true;
    return a.limiter != nullptr && b.limiter != nullptr && holds(*a.limiter) &&
           a.limiter->index() == b.limiter->index();
  };
  return name == other.name &&
         std::equal(variants.begin(), variants.end(), other.variants.begin(), other.variants.end(), alike);
}

const SavedRule::Variant* SavedRule::variant_of(LimiterId limiter_id) const noexcept {
  const auto found = std::find_if(variants.begin(), variants.end(),
                                  [&](const Variant& variant) { return variant.limiter_id == limiter_id; });
  return found != variants.end() ? &*found : nullptr;
}

const Limiter* SavedRule::limiter_named(std::uint64_t wanted) const noexcept {
  const auto found = std::find_if(variants.begin(), variants.end(),
                                  [&](const Variant& variant) { return variant.name == wanted; });
  return found != variants.end() ? found->limiter : nullptr;
}

}  // namespace weir::limit
