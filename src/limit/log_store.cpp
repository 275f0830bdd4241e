#include "limit/log_store.hpp"

namespace weir::limit {

LogStore::LogStore(std::size_t chunks)
    : size_(chunks), pages_(chunks * sizeof(Chunk)), chunks_(reinterpret_cast<Chunk*>(pages_.at(0))) {}

LogStore::Ref LogStore::take() noexcept {
  const std::lock_guard lock(mutex_);
  Ref chunk = free_;
  if (chunk != 0)
    free_ = (*this)[chunk].next;
  else if (touched_ < size_)
    chunk = static_cast<Ref>(++touched_);
  else
    return 0;
  ++in_use_;
  (*this)[chunk] = {.next = chunk, .first = 0, .count = 0, .spare = 0, .entries = {}};
  return chunk;
}

void LogStore::give_back(Ref chunk) noexcept {
  const std::lock_guard lock(mutex_);
  (*this)[chunk].next = free_;
  free_ = chunk;
  --in_use_;
}

void LogStore::give_back_ring(Ref chunk) noexcept {
  if (chunk == 0) return;
  std::size_t count = 1;
  Ref last = chunk;
  for (; (*this)[last].next != chunk; last = (*this)[last].next) ++count;
  const std::lock_guard lock(mutex_);
  (*this)[last].next = free_;
  free_ = chunk;
  in_use_ -= count;
}

std::size_t LogStore::in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

}  // namespace weir::limit
