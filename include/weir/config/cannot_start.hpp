// Thrown if weir cannot start. The message tells the person who started weir why.
#pragma once

#include <stdexcept>

namespace weir::config {

struct CannotStart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace weir::config
