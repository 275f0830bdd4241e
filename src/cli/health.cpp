#include "cli/admin_json.hpp"
#include "cli/ask_admin.hpp"

#include "weir/cli/commands.hpp"

#include <iostream>
#include <stdexcept>
#include <string>

#include <boost/json.hpp>

namespace weir::cli {

namespace {

std::string text_in(const boost::json::object& reply_json, const char* name) {
  const auto* text = reply_json.if_contains(name);
  return text != nullptr && text->is_string() ? text->as_string().c_str() : std::string();
}

void expect_health(const AdminReply& reply) {
  if (reply.status != 200) throw std::runtime_error("it does not return 200");
}

// Throws std::runtime_error with the reason if the reply of /readyz says that weir is not ready.
void expect_readiness(const AdminReply& reply) {
  const auto reply_json = object_in(reply);
  const auto* ready = reply_json.if_contains("ready");
  if (ready == nullptr || !ready->is_bool()) throw NotWeir();
  if (ready->as_bool()) return;
  auto why = "not ready: " + text_in(reply_json, "detail");
  if (const auto cause = text_in(reply_json, "cause"); !cause.empty()) why += " (" + cause + ")";
  throw std::runtime_error(why);
}

}  // namespace

int run_health(const base::Endpoint& admin, bool ready) {
  try {
    const auto reply = ask_admin({.address = admin,
                                  .token = {},
                                  .target = ready ? "/readyz" : "/healthz",
                                  .patience = std::chrono::seconds(2)});
    ready ? expect_readiness(reply) : expect_health(reply);
    return 0;
  } catch (const std::runtime_error& error) {
    std::cerr << "weir: " << admin.to_string() << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace weir::cli
