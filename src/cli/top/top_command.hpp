// `weir top`: shows what a running weir does now, and draws the view again each second.
#pragma once

#include "weir/base/endpoint.hpp"

#include <string>

namespace weir::cli {

struct TopOptions {
  base::Endpoint admin;
  std::string token;     // empty: requests have no token
  bool once = false;     // print one frame of unlimited height; needs no terminal
  bool json = false;     // print one frame as JSON; implies `once`
  unsigned clients = 5;  // number of clients in each list
};

// Draws frames until the user presses q or Ctrl-C, or only one frame. Returns 0 afterwards. Returns 1 if weir
// does not answer the first request, or if standard input or output is not a terminal and `once` is false.
// Signals such as SIGTERM end the process after the terminal is restored.
int run_top(const TopOptions& options);

}  // namespace weir::cli
