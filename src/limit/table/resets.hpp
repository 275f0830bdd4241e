// Which keys were reset while requests were under way, and when: what was charged before is given back to
// nobody. A shard knows the turn of its last reset, so only what was charged before that one asks here.
//
// The last kMost are known one by one. What is older than those stands for every key: whoever charged before
// is given nothing back, though another key was meant. That errs on the safe side, and takes more resets than
// kMost while one request is under way.
//
// Owned by the key table. Any thread may call anything; the lock comes after a shard's, and nothing is locked
// under it.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/turn.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

namespace weir::limit {

class Resets {
 public:
  static constexpr std::size_t kMost = 1024;

  // Throws where memory runs out, and then nothing is noted.
  void note(const Key& key, Turn turn) {
    const std::lock_guard lock(mutex_);
    if (noted_.empty()) noted_.reserve(kMost);
    if (noted_.size() < kMost) return noted_.push_back({key, turn});
    auto& oldest = noted_[next_++ % kMost];
    forgotten_ = std::max(forgotten_, oldest.turn);
    oldest = {key, turn};
  }

  // Whether the key was reset in that turn or later, as far as is known.
  [[nodiscard]] bool noted_since(const Key& key, Turn turn) const {
    const std::lock_guard lock(mutex_);
    if (next_ != 0 && turn <= forgotten_) return true;
    return std::any_of(noted_.begin(), noted_.end(),
                       [&](const Reset& reset) { return turn <= reset.turn && reset.key == key; });
  }

 private:
  struct Reset {
    Key key;
    Turn turn;
  };

  mutable std::mutex mutex_;
  std::vector<Reset> noted_;
  std::size_t next_ = 0;  // to be forgotten, once there are kMost
  Turn forgotten_ = 0;    // of the last that was
};

}  // namespace weir::limit
