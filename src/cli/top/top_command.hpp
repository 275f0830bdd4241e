// `weir top`: shows the present activity of a running weir, drawn again each second.
#pragma once

#include "weir/base/endpoint.hpp"

#include <string>

namespace weir::cli {

struct TopOptions {
  base::Endpoint admin;
  std::string token;     // empty: no token
  bool once = false;     // prints one frame of any height, and needs no terminal
  bool json = false;     // prints that frame as JSON; implies `once`
  unsigned clients = 5;  // lines in each list
};

// Runs until q or Ctrl-C, or for one frame, and returns 0. Returns 1 if weir does not answer the first
// request. Also returns 1 if standard input is no terminal and `once` is false. Signals such as SIGTERM end
// the process after the terminal is restored.
int run_top(const TopOptions& options);

}  // namespace weir::cli
