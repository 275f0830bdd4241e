#include "limit/log/log.hpp"

#include <algorithm>
#include <cassert>

namespace weir::limit {

void Log::clear() noexcept {
  chunks_.give_back_ring(tail());
  own_ = {};
}

void Log::forget(std::uint64_t mark, std::uint64_t span) noexcept {
  if (newest() + span <= mark) return clear();
  while (tail() != 0) {
    const LogStore::Ref oldest = chunks_[tail()].next;
    auto& chunk = chunks_[oldest];
    const LogEntry entry = unpacked(chunk.entries[chunk.first]);
    if (entry.mark + span > mark) return;
    set(newest(), total() - entry.cost, tail());
    ++chunk.first;
    if (--chunk.count != 0) continue;
    chunks_[tail()].next = chunk.next;  // the newest entry is live, so `oldest` is not the newest chunk
    chunks_.give_back(oldest);
  }
}

bool Log::wants_chunk(std::uint64_t mark) const noexcept {
  if (total() == 0 || mark == newest()) return false;
  if (tail() == 0) return true;
  const auto& chunk = store_[tail()];
  return std::size_t{chunk.first} + chunk.count == LogStore::kEntries;
}

// Appends an entry. A chunk in `spare` becomes the newest chunk and receives the entry. REQUIRES: the newest
// chunk has space for an entry, or `spare` is an empty chunk.
void Log::append(std::uint64_t word, LogStore::Ref spare) noexcept {
  LogStore::Ref at = tail();
  if (spare != 0) {
    if (at != 0) {
      chunks_[spare].next = chunks_[at].next;
      chunks_[at].next = spare;
    }
    at = spare;
    set(newest(), total(), at);
  }
  auto& chunk = chunks_[at];
  chunk.entries[std::size_t{chunk.first} + chunk.count] = word;
  ++chunk.count;
}

void Log::push(const LogEntry& entry, LogStore::Ref spare) noexcept {
  assert(entry.cost != 0 && entry.cost <= SlidingLog::kMostTotal - total());
  const bool wanted = wants_chunk(entry.mark);
  const bool merges = total() != 0 && (entry.mark == newest() || (wanted && spare == 0));
  if (total() == 0) return set(entry.mark, entry.cost, 0);
  if (merges) {
    // the maximum cost of an entry; only a settlement could exceed it
    const Cost most = (Cost{1} << cost_bits_) - 1;
    if (tail() == 0) return set(entry.mark, std::min(most, total() + entry.cost), 0);
    auto& chunk = chunks_[tail()];
    auto& word = chunk.entries[std::size_t{chunk.first} + chunk.count - 1];
    const Cost before = unpacked(word).cost;
    const Cost more = std::min(entry.cost, most - before);
    word = packed({entry.mark, before + more});
    return set(entry.mark, total() + more, tail());
  }
  if (tail() == 0) {  // the log's first chunk receives the entry that was in the cell
    append(packed({newest(), total()}), spare);
    spare = 0;
  }
  append(packed(entry), spare);
  set(entry.mark, total() + entry.cost, tail());
}

// Removes the entry `index`, whose cost is 0, from the chunk `at`. `before` is the previous chunk in the
// ring.
void Log::erase(LogStore::Ref before, LogStore::Ref at, std::size_t index) noexcept {
  auto& chunk = chunks_[at];
  const auto entry = chunk.entries.begin() + static_cast<std::ptrdiff_t>(index);
  std::copy(entry + 1, chunk.entries.begin() + chunk.first + chunk.count, entry);
  LogStore::Ref last = tail();
  if (--chunk.count == 0) {
    chunks_[before].next = chunk.next;
    if (at == last) last = before;
    chunks_.give_back(at);
  }
  const auto& final = chunks_[last];
  const auto latest = unpacked(final.entries[std::size_t{final.first} + final.count - 1]).mark;
  set(latest, total(), last);
}

// Takes entry.cost from the first log entry at or after entry.mark, but at most the cost of that log entry.
// Returns the cost that was taken; 0 if no log entry is at or after entry.mark.
Cost Log::refund_first(const LogEntry& entry) noexcept {
  if (total() == 0 || entry.mark > newest()) return 0;
  if (tail() == 0) {
    const Cost back = std::min(total(), entry.cost);
    total() != back ? set(newest(), total() - back, 0) : clear();
    return back;
  }
  LogStore::Ref before = tail();
  do {
    const LogStore::Ref at = chunks_[before].next;
    auto& chunk = chunks_[at];
    for (std::size_t i = chunk.first; i < std::size_t{chunk.first} + chunk.count; ++i) {
      const LogEntry found = unpacked(chunk.entries[i]);
      if (found.mark < entry.mark) continue;
      const Cost back = std::min(found.cost, entry.cost);
      if (back == total()) {
        clear();
        return back;
      }
      set(newest(), total() - back, tail());
      chunk.entries[i] = packed({found.mark, found.cost - back});
      if (found.cost == back) erase(before, at, i);
      return back;
    }
    before = at;
  } while (before != tail());
  return 0;
}

LogEntry Log::first_from(std::uint64_t mark, std::uint64_t** word) const noexcept {
  if (total() == 0 || newest() < mark) return {};
  if (tail() == 0) return {newest(), total()};
  LogStore::Ref at = tail();
  do {
    at = chunks_[at].next;
    auto& chunk = chunks_[at];
    for (std::size_t i = chunk.first; i < std::size_t{chunk.first} + chunk.count; ++i) {
      const LogEntry found = unpacked(chunk.entries[i]);
      if (found.mark < mark) continue;
      *word = &chunk.entries[i];
      return found;
    }
  } while (at != tail());
  return {};
}

void Log::refund_from(const LogEntry& entry) noexcept {
  for (Cost left = entry.cost; left != 0;) {
    const Cost back = refund_first({entry.mark, left});
    if (back == 0) return;
    left -= back;
  }
}

bool Log::add_from(const LogEntry& entry, Cost most_entered) noexcept {
  std::uint64_t* word = nullptr;
  const LogEntry found = first_from(entry.mark, &word);
  if (found.cost == 0) return false;
  const Cost room = std::min(SlidingLog::kMostTotal - total(), most_entered - found.cost);
  const Cost more = std::min(entry.cost, room);
  if (word != nullptr) *word = packed({found.mark, found.cost + more});
  set(newest(), total() + more, tail());
  return true;
}

}  // namespace weir::limit
