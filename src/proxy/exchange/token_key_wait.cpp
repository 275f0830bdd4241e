#include "proxy/exchange/token_key_wait.hpp"

namespace weir::proxy {

bool TokenKeyWait::has_key() const {
  return !context_.config.client.tokens->lacking(context_.buffers.request.client.token);
}

// While fetches fail, no request waits, because a fetch is repeated anyway.
net::Task<void> TokenKeyWait::run() {
  using observe::TokenKeyWaited;
  auto& keys = *source_.keys;
  auto& watch = context_.watch;
  auto& counters = context_.worker.counters;
  const auto number = keys.want();
  bool found = false, told = false;
  if (keys.enter(source_.settings->max_waiting)) {
    watch.begin_cancellable_wait();
    watch.arm(source_.settings->wait);
    while (!cancelled_ && !keys.is_failing()) {
      told = keys.has_fetched(number);  // before has_key(), because a fetch may end in between
      found = has_key();
      if (found || told) break;
      (void)co_await waiter_.wait();
    }
    watch.disarm();
    watch.end_cancellable_wait();
    keys.leave();
    context_.read_clock();
  }
  context_.buffers.credentials.keys_current = told;
  counters
      .token_key_waits(found  ? TokenKeyWaited::Found
                       : told ? TokenKeyWaited::Unknown
                              : TokenKeyWaited::Unavailable)
      .add();
}

}  // namespace weir::proxy
