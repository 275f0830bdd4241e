#include "weir/observe/histogram.hpp"

namespace weir::observe {

Histogram::Totals& Histogram::Totals::operator+=(const Totals& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts[i] += other.counts[i];
  count += other.count;
  sum_us += other.sum_us;
  return *this;
}

Histogram::Totals Histogram::read() const noexcept {
  Totals totals;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    totals.counts[i] = buckets_[i].value();
    totals.count += totals.counts[i];
  }
  totals.sum_us = sum_us_.value();
  return totals;
}

void Histogram::clear() noexcept {
  for (auto& bucket : buckets_) bucket.clear();
  sum_us_.clear();
}

}  // namespace weir::observe
