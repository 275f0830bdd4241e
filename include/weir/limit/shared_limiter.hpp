// An immutable limiter that several rule sets share. All copies of a SharedLimiter point to one limiter,
// which never moves. So charges, promised departures and Redis state can point to the limiter even after a
// reload.
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
  // NOLINTBEGIN(bugprone-forwarding-reference-overload): the constraint excludes copies and moves
  template <class L>
  requires std::constructible_from<Limiter, L> &&
      (!std::same_as<std::remove_cvref_t<L>, SharedLimiter>)SharedLimiter(L&& limiter)
      : limiter_(std::make_shared<const Limiter>(std::forward<L>(limiter))) {}
  // NOLINTEND(bugprone-forwarding-reference-overload)

  [[nodiscard]] const Limiter* get() const noexcept { return limiter_.get(); }
  [[nodiscard]] const Limiter& operator*() const noexcept { return *limiter_; }
  operator const Limiter&() const noexcept { return *limiter_; }

 private:
  std::shared_ptr<const Limiter> limiter_;  // shared, because charges and departures may outlive the rule set
};

// All limiters that any configuration of this process has used. Equal limiters are one object, so a rule that
// a reload did not change keeps its limiter. The process never frees a limiter, because charges may still
// point to it. Belongs to the main thread.
class Limiters {
 public:
  // The maximum number of limiters. Each uses some 200 bytes.
  static constexpr std::size_t kMost = 65'536;

  // Replaces `limiter` by the equal limiter of this collection, or adds `limiter` to the collection. Returns
  // false if the collection already has kMost limiters.
  [[nodiscard]] bool settle(SharedLimiter& limiter);
  [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const base::Digest128& digest) const noexcept { return digest.lo; }
  };
  std::unordered_map<base::Digest128, SharedLimiter, Hash> kept_;  // the limiters by fingerprint
};

}  // namespace weir::limit
