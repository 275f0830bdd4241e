// Agrees with other weirs on a secret, if `[state] key_secret` is not set. The secret is random and kept in
// Redis under "PREFIX:secret".
//
// Every weir offers a secret (SET … NX) and then reads the one that Redis holds. It repeats both every five
// seconds, because Redis may lose its data. After a loss, the first weir that asks puts its secret back, and
// a weir that finds another secret adopts it. So weirs that share a Redis differ for one period at most.
//
// One object per process, used on one thread.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/siphash.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"
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
// in_hex() returns 32 lower-case hexadecimal digits. secret_in() is its inverse; it returns nullopt for any
// other text.
[[nodiscard]] std::string in_hex(const base::SipKey& secret);
[[nodiscard]] std::optional<base::SipKey> secret_in(std::string_view text);

// The value that Redis holds under the key of the secret.
struct SecretLook {
  enum class State : std::uint8_t {
    Absent,   // nothing: the first weir puts its secret there
    Good,     // a secret
    Foreign,  // another value; `what` describes it: "a list"
    Unknown,  // the read failed; `what` says why
  };
  State state = State::Unknown;
  std::string what{};
};

class SharedSecret {
 public:
  // Called with the first secret that Redis returns, and with each later one that differs from the one
  // before.
  using Agreed = std::function<void(const base::SipKey&)>;

  // `offered`: the secret that weir puts into Redis if Redis has none. No command is sent before start().
  SharedSecret(net::Executor executor, const RedisSettings& settings, const base::SipKey& offered,
               StoreLog log, Agreed agreed);
  ~SharedSecret();  // stops
  SharedSecret(const SharedSecret&) = delete;
  SharedSecret& operator=(const SharedSecret&) = delete;

  // Reads the secret from the Redis server at `address`, or from the node of the cluster that `address`
  // names. Offers no secret. `settings` must outlive the coroutine.
  [[nodiscard]] static net::Task<SecretLook> look(net::Executor executor, const RedisSettings& settings,
                                                  base::Endpoint address);

  void start();
  void stop();

  // Returns true once Redis has returned a secret.
  [[nodiscard]] bool is_agreed() const noexcept;
  // Returns why the last attempt failed. Empty if the last attempt succeeded, or if no attempt has ended.
  [[nodiscard]] const std::string& why() const noexcept;

 private:
  class Asking;
  std::shared_ptr<Asking> asking_;  // shared with its coroutine, which ends after this object
};

}  // namespace weir::redis
