// The secret that weirs without `[state] key_secret` share: random, kept in their Redis under
// "PREFIX:secret".
//
// Every weir offers a secret of its own (SET … NX) and then takes the one that Redis has. It asks again every
// five seconds, because a Redis may lose its data: then the first weir that asks puts its secret back, and a
// weir that finds another secret adopts it. So weirs that share a Redis differ for one period at most.
//
// One object a process, on one thread.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/siphash.hpp"
#include "weir/net/asio.hpp"
#include "weir/redis/redis_settings.hpp"
#include "weir/redis/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::redis {

// The key under which Redis keeps the secret.
[[nodiscard]] std::string secret_name(const RedisSettings& settings);
// 32 lower-case hexadecimal digits; the inverse returns nullopt for any other text.
[[nodiscard]] std::string in_hex(const base::SipKey& secret);
[[nodiscard]] std::optional<base::SipKey> secret_in(std::string_view text);

// The value that Redis holds under the key of the secret.
struct SecretLook {
  enum class State : std::uint8_t {
    Absent,   // nothing: the first weir puts its secret there
    Good,     // a secret
    Foreign,  // something else, as `what` says: "a list"
    Unknown,  // it could not be asked for, and why: `what`
  };
  State state = State::Unknown;
  std::string what{};
};

class SharedSecret {
 public:
  // Called with the first secret that Redis has, and with each later one that differs from it.
  using Agreed = std::function<void(const base::SipKey&)>;

  // `offered`: the secret that Redis gets if it has none. Nothing is asked before start().
  SharedSecret(net::Executor executor, const RedisSettings& settings, const base::SipKey& offered,
               StoreLog log, Agreed agreed);
  ~SharedSecret();  // stops
  SharedSecret(const SharedSecret&) = delete;
  SharedSecret& operator=(const SharedSecret&) = delete;

  // Looks at the Redis of that address, or in a cluster at the node that it names, and offers no secret. The
  // settings outlive it.
  [[nodiscard]] static net::Awaitable<SecretLook> look(net::Executor executor, const RedisSettings& settings,
                                                       base::Endpoint address);

  void start();
  void stop();

  // Returns true once Redis has told a secret.
  [[nodiscard]] bool is_agreed() const noexcept;
  // Returns why the last attempt failed; empty after one that succeeded, and before the first has ended.
  [[nodiscard]] const std::string& why() const noexcept;

 private:
  class Asking;
  std::shared_ptr<Asking> asking_;  // shared with its coroutine, which ends after this object
};

}  // namespace weir::redis
