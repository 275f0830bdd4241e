// A request body that goes up while the answer is awaited: the one place where two coroutines work on one
// exchange. The exchange waits for the upload to end before it ends itself.
#pragma once

#include "proxy/exchange.hpp"

#include "weir/net/signal.hpp"

#include <string>

namespace weir::proxy {

struct Exchange::Upload {
  explicit Upload(net::Executor executor) : finished(executor) {}

  net::Signal finished;  // raised when done
  std::string out;       // framing under way
  bool done = false;
  bool stop = false;  // the answer is over: send no more
  // Why the body did not come whole, as the answer to give; 0: it did, or the upstream took no more.
  unsigned fault = 0;
};

}  // namespace weir::proxy
