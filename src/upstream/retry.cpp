#include "weir/upstream/retry.hpp"

#include <algorithm>

namespace weir::upstream {

base::Duration backoff(base::Duration first, unsigned repetition, std::uint64_t random) noexcept {
  auto longest = std::min(first, kLongestBackoff);
  for (unsigned i = 1; i < repetition && longest < kLongestBackoff; ++i)
    longest = std::min(2 * longest, kLongestBackoff);
  return base::Duration{
      static_cast<base::Duration::rep>(random % (static_cast<std::uint64_t>(longest.count()) + 1))};
}

}  // namespace weir::upstream
