// A reason why weir cannot start, as a message for the person who started it.
#pragma once

#include <stdexcept>

namespace weir::config {

struct CannotStart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace weir::config
