// A configuration that has mistakes, and the exact messages that weir must report.
#pragma once

#include "unit/config/configuration.hpp"

#include <ostream>
#include <string>
#include <vector>

namespace weir::config::test {

struct WrongConfiguration {
  std::string name;
  std::string text;
  std::vector<std::string> mistakes;
};

inline void PrintTo(const WrongConfiguration& wrong, std::ostream* out) {
  *out << wrong.name;
}

}  // namespace weir::config::test
