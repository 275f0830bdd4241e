// A wrong configuration and what is said of it, for the tests that hold messages to the letter.
#pragma once

#include "unit/config/configuration.hpp"

#include <ostream>
#include <string>
#include <vector>

namespace weir::app::test {

struct WrongConfiguration {
  std::string name;
  std::string text;
  std::vector<std::string> mistakes;
};

inline void PrintTo(const WrongConfiguration& wrong, std::ostream* out) {
  *out << wrong.name;
}

}  // namespace weir::app::test
