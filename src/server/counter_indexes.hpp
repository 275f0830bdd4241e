// Assigns numbers to the names of a configuration's routes, rules and upstreams. A name keeps its number
// until free() is called. Then another name may get the number. ConfigSnapshots owns the object, which
// belongs to the main thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weir::server {

class CounterIndexes {
 public:
  explicit CounterIndexes(std::size_t most) : most_(most) {}

  // Returns the number of a name. If the name has no number, assigns one. Returns nullopt if all numbers are
  // taken. REQUIRES a name that is not empty.
  [[nodiscard]] std::optional<std::size_t> take(const std::string& name) {
    auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) found = std::find(names_.begin(), names_.end(), std::string());
    if (found == names_.end() && names_.size() == most_) return std::nullopt;
    if (found == names_.end()) found = names_.insert(names_.end(), name);
    *found = name;
    return static_cast<std::size_t>(found - names_.begin());
  }
  void free(std::size_t index) { names_[index].clear(); }

  // Returns the names; the index is the number. An empty name means that the number is free.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  const std::size_t most_;
  std::vector<std::string> names_;
};

}  // namespace weir::server
