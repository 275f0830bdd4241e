// `weir top`: what a running weir does at the moment, as a view that a terminal shows anew each second.
#pragma once

#include "weir/base/endpoint.hpp"

#include <string>

namespace weir::app {

struct TopOptions {
  base::Endpoint admin;
  std::string token;     // empty: none
  bool once = false;     // one frame, whatever its height, and no terminal is asked anything
  bool json = false;     // that frame as JSON; implies `once`
  unsigned clients = 5;  // of each list
};

// Until q or Ctrl-C; 0 then, and after one frame; 1 where weir does not answer at first, or standard input is
// no terminal and `once` was not asked. SIGTERM and its like end the process once the terminal is as it was.
int run_top(const TopOptions& options);

}  // namespace weir::app
