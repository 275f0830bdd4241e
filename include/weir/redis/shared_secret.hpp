// Agrees with other weir processes on a secret, if `[state] key_secret` is not set. The secret is random.
// Redis keeps the secret under "PREFIX:secret".
//
// Every weir offers a secret with SET … NX, which Redis ignores if it already has a secret. Then weir reads
// the secret that Redis has, and adopts this secret. weir repeats both commands every five seconds, because
// Redis may lose its data. After a loss, the first weir that repeats the commands restores the agreed secret.
// Because every weir reads the secret this often, weirs that share a Redis use different secrets for five
// seconds at most.
//
// The program owns one object and uses it on the main thread.
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
// in_hex() returns the secret as 32 lower-case hexadecimal digits. secret_in() parses the 32 digits, and
// returns nullopt for any other text.
[[nodiscard]] std::string in_hex(const base::SipKey& secret);
[[nodiscard]] std::optional<base::SipKey> secret_in(std::string_view text);

// The value that Redis has under the key of the secret.
struct SecretState {
  enum class State : std::uint8_t {
    Absent,   // no value: the first weir that asks stores its secret
    Good,     // the value is a secret
    Foreign,  // the value is not a secret; `what` describes the value: "a list"
    Unknown,  // the value could not be read; `what` says why
  };
  State state = State::Unknown;
  std::string what{};
};

class SharedSecret {
 public:
  // Called with the first secret that Redis returns, and again whenever Redis returns another secret.
  using OnSecret = std::function<void(const base::SipKey&)>;

  // `offered`: the secret that weir stores in Redis if Redis has none. Copies the settings. The constructor
  // sends nothing; start() does. Throws std::runtime_error if the system provides no random numbers.
  SharedSecret(net::Executor executor, const RedisSettings& settings, const base::SipKey& offered,
               StoreLog log, OnSecret agreed);
  ~SharedSecret();  // calls stop()
  SharedSecret(const SharedSecret&) = delete;
  SharedSecret& operator=(const SharedSecret&) = delete;

  // Reads the secret and changes nothing in Redis. `address`: the Redis server, or any node of the cluster,
  // which may redirect weir to the node that has the secret. `settings` must outlive the coroutine. Throws
  // std::runtime_error if the system provides no random numbers.
  [[nodiscard]] static net::Task<SecretState> read(net::Executor executor, const RedisSettings& settings,
                                                   base::Endpoint address);

  void start();
  void stop();

  // Returns true once Redis has returned a secret.
  [[nodiscard]] bool is_agreed() const noexcept;
  // Returns why the last attempt failed. Empty if the last attempt succeeded, or before the first attempt has
  // ended.
  [[nodiscard]] const std::string& why() const noexcept;

 private:
  class Agreement;
  // Shared with the coroutine that asks Redis, which may end after this object is destroyed.
  std::shared_ptr<Agreement> asking_;
};

}  // namespace weir::redis
