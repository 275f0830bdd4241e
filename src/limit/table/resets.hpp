// The keys that were reset while requests were under way. Charges made before a reset are not refunded. A
// shard knows the timestamp of its last reset, so only earlier charges need a lookup here.
//
// The last kMost resets are stored one by one. Older resets count for all keys: a charge before them is not
// refunded, even if its own key was not reset. This errs on the safe side, and needs more than kMost resets
// while one request is under way.
//
// Owned by the key table. Safe to call from any thread. The lock is taken after a shard's, and no lock is
// taken under it.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/hybrid_timestamp.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

namespace weir::limit {

class Resets {
 public:
  static constexpr std::size_t kMost = 1024;

  // Throws std::bad_alloc, and then has stored nothing.
  void note(const Key& key, HybridTimestamp timestamp) {
    const std::lock_guard lock(mutex_);
    if (noted_.empty()) noted_.reserve(kMost);
    if (noted_.size() < kMost) return noted_.push_back({key, timestamp});
    auto& oldest = noted_[next_++ % kMost];
    forgotten_ = std::max(forgotten_, oldest.timestamp);
    oldest = {key, timestamp};
  }

  // Returns true if the key was, or may have been, reset at or after that timestamp.
  [[nodiscard]] bool noted_since(const Key& key, HybridTimestamp timestamp) const {
    const std::lock_guard lock(mutex_);
    if (next_ != 0 && timestamp <= forgotten_) return true;
    return std::any_of(noted_.begin(), noted_.end(),
                       [&](const Reset& reset) { return timestamp <= reset.timestamp && reset.key == key; });
  }

 private:
  struct Reset {
    Key key;
    HybridTimestamp timestamp;
  };

  mutable std::mutex mutex_;
  std::vector<Reset> noted_;
  std::size_t next_ = 0;           // the next to overwrite, once there are kMost
  HybridTimestamp forgotten_ = 0;  // the latest timestamp that was overwritten
};

}  // namespace weir::limit
