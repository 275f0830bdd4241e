// The keys that were reset while requests were under way. A charge made before a reset of its key is not
// refunded. Each shard stores the timestamp of its last reset, so only charges before that timestamp need a
// lookup here.
//
// The last kMost resets are stored one by one. An older reset counts as a reset of all keys: no charge from
// before it is refunded, even if the charge's own key was never reset. This error needs more than kMost
// resets during one request, and no client gains by it.
//
// Owned by the key table. Safe to call from any thread. The caller may hold a shard's lock. This class takes
// no other lock while it holds its own lock.
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

  // Stores a reset. Stores nothing if it throws std::bad_alloc.
  void note(const Key& key, HybridTimestamp timestamp) {
    const std::lock_guard lock(mutex_);
    if (noted_.empty()) noted_.reserve(kMost);
    if (noted_.size() < kMost) return noted_.push_back({key, timestamp});
    auto& oldest = noted_[next_++ % kMost];
    forgotten_ = std::max(forgotten_, oldest.timestamp);
    oldest = {key, timestamp};
  }

  // Returns true if the key was reset at or after `timestamp`. Also returns true if that is unknown, because
  // a reset at or after `timestamp` has been overwritten.
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
  std::size_t next_ = 0;           // when kMost resets are stored: the index of the next reset to overwrite
  HybridTimestamp forgotten_ = 0;  // the latest timestamp of an overwritten reset
};

}  // namespace weir::limit
