#include "weir/proxy/body_memory.hpp"

#include <algorithm>

namespace weir::proxy {

bool BodyMemory::take(std::uint64_t bytes) noexcept {
  const auto most = most_.load(std::memory_order_relaxed);
  auto taken = taken_.load(std::memory_order_relaxed);
  do {
    if (taken > most || bytes > most - taken) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

bool BodyMemoryShare::resize(std::uint64_t bytes) noexcept {
  if (bytes > taken_ && !memory_.take(bytes - taken_)) {
    counters_.body_memory_refused.add();
    return false;
  }
  if (bytes < taken_) memory_.give_back(taken_ - bytes);
  counters_.body_memory.add(static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(taken_));
  taken_ = bytes;
  return true;
}

bool BodyBuffer::append(std::string_view piece, std::uint64_t most) {
  if (piece.empty()) return true;
  const auto size = text_.size() + piece.size();
  if (size > taken_ && !grow(size, most)) {
    counters_.body_memory_refused.add();
    return false;
  }
  text_ += piece;
  return true;
}

// Doubles the capacity, or increases it by an eighth if there is too little memory for doubling. In both
// cases, a body that arrives in many pieces is copied only a few times. During the copy, the old block still
// exists but is not counted. This is acceptable: the copy does not wait, so each worker has at most one such
// block. Returns false and changes nothing if there is too little memory even for an eighth.
bool BodyBuffer::grow(std::size_t size, std::uint64_t most) {
  const auto bounded = [&](std::size_t wanted) {
    return std::max(size, static_cast<std::size_t>(std::min<std::uint64_t>(wanted, most)));
  };
  auto wanted = bounded(2 * taken_);
  if (!memory_.take(wanted - taken_)) {
    wanted = bounded(taken_ + taken_ / 8);
    if (!memory_.take(wanted - taken_)) return false;
  }
  try {
    if (wanted > text_.capacity()) {
      // a new string, because reserve() on a string that is not empty may allocate more than requested
      std::string bigger;
      bigger.reserve(wanted);
      bigger = text_;
      text_.swap(bigger);
    }
  } catch (...) {
    memory_.give_back(wanted - taken_);
    throw;
  }
  counters_.body_memory.add(static_cast<std::int64_t>(wanted - taken_));
  taken_ = wanted;
  return true;
}

void BodyBuffer::clear() noexcept {
  if (taken_ == 0) return;
  text_.clear();
  if (text_.capacity() > kKept) std::string().swap(text_);
  memory_.give_back(taken_);
  counters_.body_memory.remove(static_cast<std::int64_t>(taken_));
  taken_ = 0;
}

}  // namespace weir::proxy
