// A limiter that several rule sets share. Copies share it, and it never moves. So charges, promised
// departures and Redis state may point to it, whichever version of the configuration they began with.
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
  std::shared_ptr<const Limiter> limiter_;  // shared: others may outlive the rule set
};

// All limiters that have ever been in force. Equal limiters are one object. The process keeps them for ever,
// because nobody knows who still points to them. So a rule that a reload did not change keeps its limiter.
// Belongs to the main thread.
class Limiters {
 public:
  // Each takes some 200 bytes.
  static constexpr std::size_t kMost = 65'536;

  // Replaces `limiter` by the kept limiter that equals it, or keeps it. Returns false if there are kMost
  // already.
  [[nodiscard]] bool settle(SharedLimiter& limiter);
  [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const base::Digest128& digest) const noexcept { return digest.lo; }
  };
  std::unordered_map<base::Digest128, SharedLimiter, Hash> kept_;  // by fingerprint
};

}  // namespace weir::limit
