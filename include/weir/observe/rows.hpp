// Rows of counters, one for each label: room for more is made while others count in those that there are.
#pragma once

#include <cstddef>
#include <memory>

namespace weir::observe {

// Rows stay where they are while others are added, so a reader needs no lock. One thread adds; who reads or
// counts in a row has heard of it from that thread.
template <class Row, std::size_t kMost>
class Rows {
 public:
  // REQUIRES size <= kMost.
  void grow_to(std::size_t size) {
    for (; size_ < size; ++size_) rows_[size_] = std::make_unique<Row>();
  }
  // REQUIRES that there is such a row.
  [[nodiscard]] Row& operator[](std::size_t at) const noexcept { return *rows_[at]; }

 private:
  std::unique_ptr<std::unique_ptr<Row>[]> rows_ = std::make_unique<std::unique_ptr<Row>[]>(kMost);
  std::size_t size_ = 0;
};

}  // namespace weir::observe
