// What stops weir before it has served anything, in words for the person who started it.
#pragma once

#include <stdexcept>

namespace weir::app {

struct CannotStart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace weir::app
