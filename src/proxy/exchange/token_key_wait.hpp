// Lets a request wait until weir has fetched the key that signed its token.
#pragma once

#include "proxy/exchange/exchange_context.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/token_key_waiters.hpp"

#include <string_view>

namespace weir::proxy {

class TokenKeyWait {
 public:
  // `source`: the keys that lack the key of the request's token.
  TokenKeyWait(ExchangeContext& context, const policy::TokenVerifier::KeySource& source)
      : context_(context),
        source_(source),
        waiter_(context.worker.token_key_waiters, context.worker.executor) {}

  // Asks for a fetch. Waits until the key has come, the issuer has told that it does not have the key, a
  // fetch has failed or the issuer's `wait` has passed. The wait also ends if the client disconnects or weir
  // stops. Then sets Credentials::keys_current and counts the outcome.
  [[nodiscard]] net::Task<void> run();
  void cancel() noexcept {
    cancelled_ = true;
    waiter_.cancel();
  }

 private:
  [[nodiscard]] bool has_key() const;

  ExchangeContext& context_;
  const policy::TokenVerifier::KeySource source_;
  TokenKeyWaiters::Waiter waiter_;
  bool cancelled_ = false;
};

}  // namespace weir::proxy
