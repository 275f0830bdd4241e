// Lets a request wait until weir has fetched the key that signed its token.
#pragma once

#include "proxy/exchange/exchange_context.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/token_key_waiters.hpp"

#include <string_view>

namespace weir::proxy {

class TokenKeyWait {
 public:
  // `source`: the keys of the token's issuer. The key that signed the token is not yet among them.
  TokenKeyWait(ExchangeContext& context, const policy::TokenVerifier::KeySource& source)
      : context_(context),
        source_(source),
        waiter_(context.worker.token_key_waiters, context.worker.executor) {}

  // Asks for a fetch of the issuer's keys and waits. The wait ends when a fetch has brought the key, has
  // succeeded without the key, or has failed. It also ends when the issuer's `wait` has passed, when the
  // client disconnects, or when weir stops. After the wait, sets Credentials::keys_current (true if a fetch
  // succeeded meanwhile) and counts the outcome.
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
