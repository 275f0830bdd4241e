// The first commands on a new connection. Pure: the bytes to send, and what each reply must be.
#pragma once

#include "redis/connection/resp.hpp"

#include "weir/redis/redis_settings.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

// The reply that one command of a greeting must have.
enum class Step : std::uint8_t {
  Must,        // must not be an error
  May,         // may be anything
  Role,        // a master's role, or an error, because the user may lack the right to ask
  LoadCharge,  // the SHA-1 of a script
  LoadRefund,
};

struct Greeting {
  std::string bytes;
  std::vector<Step> steps;

  void say(Step step, std::initializer_list<std::string_view> words);
};

// Appends AUTH if there is a password. An empty user means the default user.
void say_who(Greeting& greeting, std::string_view user, std::string_view password);
// Returns AUTH and SELECT.
[[nodiscard]] Greeting sign_in(const RedisSettings& settings);
// Returns all commands that a store's connection sends before the trial charge.
[[nodiscard]] Greeting greet(const RedisSettings& settings);

// Returns true if the reply to ROLE is that of a replica or a Sentinel.
[[nodiscard]] bool is_no_master(const Reply& reply) noexcept;

}  // namespace weir::redis
