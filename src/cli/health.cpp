#include "cli/ask_admin.hpp"

#include "weir/cli/commands.hpp"

#include <iostream>
#include <stdexcept>

namespace weir::cli {

int run_health(const base::Endpoint& admin) {
  try {
    const auto reply =
        ask_admin({.address = admin, .token = {}, .target = "/healthz", .patience = std::chrono::seconds(2)});
    if (reply.status == 200) return 0;
    throw std::runtime_error("it does not return 200");
  } catch (const std::runtime_error& error) {
    std::cerr << "weir: " << admin.to_string() << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace weir::cli
