// Rows of counters, one for each index. Rows can be added while other threads count in existing rows.
#pragma once

#include <cstddef>
#include <memory>

namespace weir::observe {

// Rows never move, so readers need no lock. Only one thread may add rows. Other threads may use a row only
// after this thread has told them the row's index.
template <class Row, std::size_t kMost>
class Rows {
 public:
  // Adds rows until there are `size` rows. REQUIRES: size <= kMost.
  void grow_to(std::size_t size) {
    for (; size_ < size; ++size_) rows_[size_] = std::make_unique<Row>();
  }
  // Returns the row with this index. REQUIRES: the row exists.
  [[nodiscard]] Row& operator[](std::size_t at) const noexcept { return *rows_[at]; }

 private:
  std::unique_ptr<std::unique_ptr<Row>[]> rows_ = std::make_unique<std::unique_ptr<Row>[]>(kMost);
  std::size_t size_ = 0;
};

}  // namespace weir::observe
