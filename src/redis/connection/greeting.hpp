// What a new connection is told before anything else. Pure: bytes, and what each reply has to be.
#pragma once

#include "redis/connection/resp.hpp"

#include "weir/redis/redis_settings.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

// What a reply to one command of a greeting has to be.
enum class Step : std::uint8_t {
  Must,        // no error
  May,         // anything
  Role,        // a master's; an error too, for the user may not be allowed to ask
  LoadCharge,  // the SHA-1 of a script
  LoadRefund,
};

struct Greeting {
  std::string bytes;
  std::vector<Step> steps;

  void say(Step step, std::initializer_list<std::string_view> words);
};

// AUTH, where there is a password; an empty user is the default user.
void say_who(Greeting& greeting, std::string_view user, std::string_view password);
// AUTH and SELECT.
[[nodiscard]] Greeting sign_in(const RedisSettings& settings);
// All that a store's connection is told before it is tried.
[[nodiscard]] Greeting greet(const RedisSettings& settings);

// Whether it answers ROLE as only a replica or a Sentinel does.
[[nodiscard]] bool is_no_master(const Reply& reply) noexcept;

}  // namespace weir::redis
