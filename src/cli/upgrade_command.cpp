#include "weir/cli/upgrade_command.hpp"

#include "cli/admin_json.hpp"

#include "weir/upgrade/handed_state.hpp"

#include <chrono>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <boost/json.hpp>

namespace weir::cli {

namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kSpare{5};  // additional time for the network

std::string in_words(const json::object& reply_json) {
  for (const char* name : {"process", "keys", "changed", "left_out", "paused_ms"})
    if (!reply_json.contains(name)) throw NotWeir();
  std::ostringstream text;
  text.precision(1);
  const auto number = [&](const char* name) { return reply_json.at(name).to_number<std::uint64_t>(); };
  text << "process " << reply_json.at("process").to_number<std::int64_t>()
       << " has taken over with the state of "
       << upgrade::kept_in_words(number("keys"), number("changed"), number("left_out"))
       << "; requests waited " << std::fixed << reply_json.at("paused_ms").to_number<double>()
       << " ms at most\n";
  return text.str();
}

}  // namespace

int run_upgrade(const AdminAccess& access, base::Duration longest) {
  try {
    const auto reply = ask_admin({.address = access.address,
                                  .token = access.token,
                                  .method = "POST",
                                  .target = "/api/upgrade",
                                  .patience = std::chrono::ceil<std::chrono::seconds>(longest) + kSpare});
    if (reply.status == 401) throw std::runtime_error(why_unauthorized(access.token));
    const auto reply_json = object_in(reply);
    if (reply.status == 200) {
      std::cout << in_words(reply_json) << std::flush;
      return 0;
    }
    throw std::runtime_error(message_in(reply_json, reply) +
                             (reply.status == 409 ? "; the running process continues" : ""));
  } catch (const std::exception& error) {
    std::cerr << "weir: " << access.address.to_string() << ": no upgrade: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace weir::cli
