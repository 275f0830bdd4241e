#include "weir/observe/history.hpp"

#include <algorithm>
#include <limits>

namespace weir::observe {

namespace {

std::uint32_t grown(const std::optional<std::uint64_t>& from, std::uint64_t to) noexcept {
  if (!from) return 0;
  const std::uint64_t increase = to >= *from ? to - *from : to;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(increase, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

History::History(std::size_t series, std::size_t kept) : kept_(kept), last_(series), rows_(series * kept) {}

void History::note(std::span<const std::uint64_t> totals) {
  const bool first = !begun_;
  begun_ = true;
  for (std::size_t i = 0; i < last_.size(); ++i) {
    rows_[next_ * last_.size() + i] = grown(last_[i], totals[i]);
    last_[i] = totals[i];
  }
  if (first) return;
  next_ = (next_ + 1) % kept_;
  steps_ = std::min(steps_ + 1, kept_);
}

void History::remap(std::span<const std::optional<std::size_t>> from) {
  History fresh(from.size(), kept_);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i]) continue;
    fresh.last_[i] = last_[*from[i]];
    for (std::size_t at = 0; at < kept_; ++at)
      fresh.rows_[at * from.size() + i] = rows_[at * last_.size() + *from[i]];
  }
  last_ = std::move(fresh.last_);
  rows_ = std::move(fresh.rows_);
}

std::size_t History::row(std::size_t step) const noexcept {
  return (next_ + kept_ - steps_ + step) % kept_;
}

std::uint32_t History::increase(std::size_t series, std::size_t step) const noexcept {
  return rows_[row(step) * last_.size() + series];
}

}  // namespace weir::observe
