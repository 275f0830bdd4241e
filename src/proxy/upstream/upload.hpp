// A request body that goes up while the answer is awaited, because it comes in pieces or the server takes it
// in pieces: the one place where two coroutines work on one exchange. The exchange waits for the upload to
// end before it ends itself.
#pragma once

#include "proxy/exchange/exchange.hpp"

#include "weir/net/signal.hpp"

#include <string>

namespace weir::proxy {

struct Exchange::Upload {
  explicit Upload(net::Executor executor) : finished(executor) {}

  net::Signal finished;       // raised when done
  std::string out;            // framing under way; at first what is left of the head
  base::Duration response{};  // that the server has for an answer, and for each wait until it takes more
  base::Duration word{};      // that it has to say that it wants the body
  bool done = false;
  bool sent = false;       // all of the body went to the server
  bool stop = false;       // the answer is over: send no more
  bool expectant = false;  // the client waits for the server's word (100) before it sends any of its body
  bool continue_deadline = false;  // and the session's deadline is that of this word
  bool slow = false;               // it sent slower than min_rate
  base::TimePoint began{};         // it sends since
  base::TimePoint since{};         // it is waited for, where its pace counts; else the epoch
  // Why the body did not come whole, as the answer to give; 0: it did, or the upstream took no more.
  unsigned fault = 0;
};

}  // namespace weir::proxy
