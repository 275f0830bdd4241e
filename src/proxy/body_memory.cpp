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

bool BodyBuffer::append(std::string_view piece) {
  if (piece.empty()) return true;
  const auto size = text_.size() + piece.size();
  if (size > taken_ && !grow(size)) {
    counters_.body_memory_refused.add();
    return false;
  }
  text_ += piece;
  return true;
}

// Doubles the capacity, as std::string does, so that a body in many pieces is copied a few times only. While
// the text moves there are two blocks, and both are taken; where there is no room for that it grows by as
// much as it has to.
bool BodyBuffer::grow(std::size_t size) {
  auto wanted = std::max(size, 2 * taken_);
  if (!memory_.take(wanted)) {
    wanted = size;
    if (!memory_.take(wanted)) return false;
  }
  try {
    std::string bigger;
    bigger.reserve(wanted);
    bigger = text_;
    text_.swap(bigger);
  } catch (...) {
    memory_.give_back(wanted);
    throw;
  }
  memory_.give_back(taken_);
  counters_.body_memory.add(static_cast<std::int64_t>(wanted) - static_cast<std::int64_t>(taken_));
  taken_ = wanted;
  return true;
}

void BodyBuffer::clear() noexcept {
  if (taken_ == 0) return;
  std::string().swap(text_);
  memory_.give_back(taken_);
  counters_.body_memory.remove(static_cast<std::int64_t>(taken_));
  taken_ = 0;
}

}  // namespace weir::proxy
