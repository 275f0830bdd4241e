#include "proxy/exchange/token_key_wait.hpp"

namespace weir::proxy {

bool TokenKeyWait::has_key() const {
  return !context_.config.client.tokens->lacking(context_.buffers.request.client.token);
}

// Does not wait if the most recent fetch of the issuer's keys has failed. Ends the wait if a fetch fails.
net::Task<void> TokenKeyWait::run() {
  using observe::TokenKeyWaited;
  auto& keys = *source_.keys;
  auto& watch = context_.watch;
  auto& counters = context_.worker.counters;
  const auto number = keys.want();
  bool found = false, fetched = false;
  if (keys.enter(source_.settings->max_waiting)) {
    watch.begin_cancellable_wait();
    watch.arm(source_.settings->wait);
    while (!cancelled_ && !keys.is_failing()) {
      // has_fetched() first: a fetch that ended between the two calls would otherwise seem to lack the key
      fetched = keys.has_fetched(number);
      found = has_key();
      if (found || fetched) break;
      (void)co_await waiter_.wait();
    }
    watch.disarm();
    watch.end_cancellable_wait();
    keys.leave();
    context_.read_clock();
  }
  context_.buffers.credentials.keys_current = fetched;
  counters
      .token_key_waits(found     ? TokenKeyWaited::Found
                       : fetched ? TokenKeyWaited::Unknown
                                 : TokenKeyWaited::Unavailable)
      .add();
}

}  // namespace weir::proxy
