#include "redis/connection/setup_commands.hpp"

#include "redis/connection/command.hpp"
#include "redis/scripts/bill.hpp"

namespace weir::redis {

void SetupCommands::add(Step step, std::initializer_list<std::string_view> words) {
  append_command(bytes, words);
  steps.push_back(step);
}

void add_auth(SetupCommands& setup, std::string_view user, std::string_view password) {
  if (password.empty()) return;
  if (user.empty())
    setup.add(Step::Must, {"AUTH", password});
  else
    setup.add(Step::Must, {"AUTH", user, password});
}

SetupCommands sign_in(const RedisSettings& settings) {
  SetupCommands setup;
  add_auth(setup, settings.user, settings.password);
  if (settings.database != 0) setup.add(Step::Must, {"SELECT", std::to_string(settings.database)});
  return setup;
}

SetupCommands greet(const RedisSettings& settings) {
  SetupCommands setup = sign_in(settings);
  setup.add(Step::May, {"CLIENT", "SETNAME", "weir"});
  // Adds ROLE, because a Sentinel may report a former master, and a former master may still accept writes.
  if (settings.topology == Topology::Sentinel) setup.add(Step::Role, {"ROLE"});
  setup.add(Step::LoadCharge, {"SCRIPT", "LOAD", charge_script()});
  setup.add(Step::LoadRefund, {"SCRIPT", "LOAD", refund_script()});
  return setup;
}

bool is_no_master(const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::Other && !reply.words.empty() && reply.words.front() != "master";
}

}  // namespace weir::redis
