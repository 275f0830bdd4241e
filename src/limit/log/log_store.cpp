#include "limit/log/log_store.hpp"

namespace weir::limit {

LogStore::LogStore(std::size_t chunks)
    : size_(chunks), pages_(chunks * sizeof(Chunk)), chunks_(reinterpret_cast<Chunk*>(pages_.at(0))) {}

LogStore::Ref LogStore::take(RuleIndex rule) noexcept {
  const std::lock_guard lock(mutex_);
  return quota_.may_take(rule) ? take_any(rule) : 0;
}

LogStore::Ref LogStore::take_beyond_share(RuleIndex rule) noexcept {
  const std::lock_guard lock(mutex_);
  return take_any(rule);
}

void LogStore::share_out(const QuotaAccounts& accounts, QuotaSplit split) {
  const std::lock_guard lock(mutex_);
  quota_.share_out(accounts, accounts.logs, split);
}

void LogStore::add(RuleIndex rule, RuleIndex account) {
  const std::lock_guard lock(mutex_);
  quota_.add(rule, account);
}

// Takes a free chunk for the rule, even if the rule has used up its share. Returns 0 if no chunk is free.
// REQUIRES: the caller holds mutex_.
LogStore::Ref LogStore::take_any(RuleIndex rule) noexcept {
  Ref chunk = free_;
  if (chunk != 0)
    free_ = (*this)[chunk].next;
  else if (touched_ < size_)
    chunk = static_cast<Ref>(++touched_);
  else
    return 0;
  ++in_use_;
  quota_.take(rule);
  (*this)[chunk] = {.next = chunk, .first = 0, .count = 0, .rule = rule, .entries = {}};
  return chunk;
}

void LogStore::give_back(Ref chunk) noexcept {
  const std::lock_guard lock(mutex_);
  (*this)[chunk].next = free_;
  free_ = chunk;
  --in_use_;
  quota_.give_back((*this)[chunk].rule);
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
  quota_.give_back((*this)[chunk].rule, static_cast<std::uint32_t>(count));
}

std::size_t LogStore::in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

}  // namespace weir::limit
