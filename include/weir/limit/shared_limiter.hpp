// A limiter that several rule sets may have: copies share it, and it never moves. So charges, promised
// departures and what is known of Redis may point to it, whichever reading of the configuration they began
// with.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/limit/limiter.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace weir::limit {

class SharedLimiter {
 public:
  // NOLINTBEGIN(bugprone-forwarding-reference-overload): what it requires keeps copies and moves out
  template <class L>
  requires std::constructible_from<Limiter, L> &&
      (!std::same_as<std::remove_cvref_t<L>, SharedLimiter>)SharedLimiter(L&& limiter)
      : limiter_(std::make_shared<const Limiter>(std::forward<L>(limiter))) {}
  // NOLINTEND(bugprone-forwarding-reference-overload)

  [[nodiscard]] const Limiter* get() const noexcept { return limiter_.get(); }
  [[nodiscard]] const Limiter& operator*() const noexcept { return *limiter_; }
  operator const Limiter&() const noexcept { return *limiter_; }

 private:
  std::shared_ptr<const Limiter> limiter_;  // shared: rule sets come and go, and others point to it
};

// Every limiter that was ever in force: one for all that count alike, kept for as long as the process lives,
// because nobody knows who still points to it. So a rule that a reload did not change has the same limiter
// as before. Belongs to the main thread.
class Limiters {
 public:
  // Some 200 bytes each.
  static constexpr std::size_t kMost = 65'536;

  // Makes it the one that is kept. False: there are too many, and it is not kept.
  [[nodiscard]] bool settle(SharedLimiter& limiter);
  [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const base::Digest128& digest) const noexcept { return digest.lo; }
  };
  std::unordered_map<base::Digest128, SharedLimiter, Hash> kept_;  // by fingerprint
};

}  // namespace weir::limit
