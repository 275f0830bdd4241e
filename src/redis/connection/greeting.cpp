#include "redis/connection/greeting.hpp"

#include "redis/connection/command.hpp"
#include "redis/scripts/bill.hpp"

namespace weir::redis {

void Greeting::say(Step step, std::initializer_list<std::string_view> words) {
  append_command(bytes, words);
  steps.push_back(step);
}

void say_who(Greeting& greeting, std::string_view user, std::string_view password) {
  if (password.empty()) return;
  if (user.empty())
    greeting.say(Step::Must, {"AUTH", password});
  else
    greeting.say(Step::Must, {"AUTH", user, password});
}

Greeting sign_in(const RedisSettings& settings) {
  Greeting greeting;
  say_who(greeting, settings.user, settings.password);
  if (settings.database != 0) greeting.say(Step::Must, {"SELECT", std::to_string(settings.database)});
  return greeting;
}

Greeting greet(const RedisSettings& settings) {
  Greeting greeting = sign_in(settings);
  greeting.say(Step::May, {"CLIENT", "SETNAME", "weir"});
  // Adds ROLE, because a Sentinel may report a former master, and a former master may still accept writes.
  if (settings.topology == Topology::Sentinel) greeting.say(Step::Role, {"ROLE"});
  greeting.say(Step::LoadCharge, {"SCRIPT", "LOAD", charge_script()});
  greeting.say(Step::LoadRefund, {"SCRIPT", "LOAD", refund_script()});
  return greeting;
}

bool is_no_master(const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::Other && !reply.words.empty() && reply.words.front() != "master";
}

}  // namespace weir::redis
