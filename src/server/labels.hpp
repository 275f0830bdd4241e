// Numbers for names that configurations use: a name that stays has the same one, and one that is gone leaves
// its number to another. Belongs to the main thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weir::app {

class Labels {
 public:
  explicit Labels(std::size_t most) : most_(most) {}

  // Of a name that is not empty. Nullopt: all numbers are taken.
  [[nodiscard]] std::optional<std::size_t> take(const std::string& name) {
    auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) found = std::find(names_.begin(), names_.end(), std::string());
    if (found == names_.end() && names_.size() == most_) return std::nullopt;
    if (found == names_.end()) found = names_.insert(names_.end(), name);
    *found = name;
    return static_cast<std::size_t>(found - names_.begin());
  }
  void free(std::size_t label) { names_[label].clear(); }

  // By number; empty: nobody's.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  const std::size_t most_;
  std::vector<std::string> names_;
};

}  // namespace weir::app
