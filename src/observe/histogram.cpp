#include "weir/observe/histogram.hpp"

namespace weir::observe {

Histogram::Reading& Histogram::Reading::operator+=(const Reading& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) counts[i] += other.counts[i];
  count += other.count;
  sum_us += other.sum_us;
  return *this;
}

Histogram::Reading Histogram::read() const noexcept {
  Reading reading;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    reading.counts[i] = buckets_[i].value();
    reading.count += reading.counts[i];
  }
  reading.sum_us = sum_us_.value();
  return reading;
}

}  // namespace weir::observe
