#include "weir/limit/shared_limiter.hpp"

#include "weir/limit/saved.hpp"

namespace weir::limit {

bool Limiters::settle(SharedLimiter& limiter) {
  const auto found = kept_.find(fingerprint(limiter));
  if (found != kept_.end()) {
    limiter = found->second;
    return true;
  }
  if (kept_.size() >= kMost) return false;
  kept_.emplace(fingerprint(limiter), limiter);
  return true;
}

}  // namespace weir::limit
