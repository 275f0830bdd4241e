// The first commands on a new connection: the bytes to send, and which reply each command must get. Pure.
#pragma once

#include "redis/connection/resp.hpp"

#include "weir/redis/redis_settings.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

// The reply that a command must get. After any other reply, weir closes the connection.
enum class Step : std::uint8_t {
  Must,        // any reply except an error
  May,         // any reply, even an error
  Role,        // ROLE: a reply from a master; or an error, because the user may not be allowed to run ROLE
  LoadCharge,  // the SHA-1 of the loaded script
  LoadRefund,
};

struct SetupCommands {
  std::string bytes;
  std::vector<Step> steps;

  void add(Step step, std::initializer_list<std::string_view> words);
};

// Appends AUTH if `password` is not empty. An empty `user` means the default user.
void add_auth(SetupCommands& setup, std::string_view user, std::string_view password);
// Returns the commands AUTH and SELECT; each of them only if the settings require it.
[[nodiscard]] SetupCommands sign_in(const RedisSettings& settings);
// Returns all commands that a store's connection sends before its test charge.
[[nodiscard]] SetupCommands greet(const RedisSettings& settings);

// Returns true if the reply to ROLE says that the server is a replica or a Sentinel.
[[nodiscard]] bool is_no_master(const Reply& reply) noexcept;

}  // namespace weir::redis
