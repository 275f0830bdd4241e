#include "weir/cli/reload_command.hpp"

#include "cli/admin_json.hpp"

#include "weir/server/reload.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <system_error>

namespace weir::cli {

namespace {

constexpr std::chrono::seconds kSpare{5};  // additional time for the network
constexpr int kNotKnown = 3;

int taken(const std::vector<std::string>& changes, const std::vector<std::string>& warnings) {
  for (const auto& warning : warnings) std::cerr << warning << '\n';
  for (const auto& change : changes) std::cout << change << '\n';
  std::cout << "the configuration was reloaded"
            << (changes.empty() ? "; weir check prints the same as before\n" : "\n") << std::flush;
  return 0;
}

// Returns true if the process catches or blocks SIGHUP. A running weir blocks SIGHUP, because it reads the
// signal from a descriptor. After the end of weir, its process ID may belong to another program, which SIGHUP
// could end. Also returns true if the process cannot be examined, because kill(2) then reports the error.
bool awaits_hangup(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  if (!status) return true;
  bool awaits = false;
  for (std::string word; status >> word;) {
    if (word != "SigCgt:" && word != "SigBlk:") continue;
    std::uint64_t signals = 0;
    status >> std::hex >> signals;
    awaits = awaits || ((signals >> (SIGHUP - 1)) & 1U) != 0;
  }
  return awaits;
}

int refused(const std::vector<std::string>& mistakes) {
  for (const auto& mistake : mistakes) std::cerr << mistake << '\n';
  std::cerr << "weir: the running configuration is unchanged\n";
  return 1;
}

}  // namespace

int run_reload(const AdminAccess& access) {
  const auto fail = [&](const std::string& why) {
    std::cerr << "weir: " << access.address.to_string() << ": no reload: " << why << '\n';
    return 1;
  };
  AdminReply reply;
  try {
    reply = ask_admin({.address = access.address,
                       .token = access.token,
                       .method = "POST",
                       .target = "/api/reload",
                       .patience = server::kLongestReload + kSpare});
  } catch (const std::runtime_error& error) {
    return fail(std::string(error.what()) +
                "\na running weir keeps the [admin] address that it started with; if the file has changed "
                "since, write --admin ADDR");
  }
  if (reply.status == 401) return fail(why_unauthorized(access.token));
  try {
    const auto reply_json = object_in(reply);
    if (reply.status == 200 && !reply_json.contains("changes")) throw NotWeir();
    if (reply.status == 200) return taken(texts_in(reply_json, "changes"), texts_in(reply_json, "warnings"));
    if (reply.status == 504) {
      std::cerr << "weir: " << access.address.to_string() << ": " << message_in(reply_json, reply) << '\n';
      return kNotKnown;
    }
    const auto mistakes = texts_in(reply_json, "mistakes");
    return mistakes.empty() ? fail(message_in(reply_json, reply)) : refused(mistakes);
  } catch (const std::runtime_error& error) {
    return fail(error.what());
  }
}

int signal_reload(pid_t process) {
  if (!awaits_hangup(process)) {
    std::cerr
        << "weir: no reload: process " << process
        << " does not handle SIGHUP and would be killed by it; write the process id of a running weir\n";
    return 1;
  }
  if (::kill(process, SIGHUP) == 0) {
    std::cout << "this configuration has no [admin] listener; sent SIGHUP to process " << process
              << "; its log shows the result\n"
              << std::flush;
    return 0;
  }
  std::cerr << "weir: no reload: process " << process
            << " cannot be signalled: " << std::generic_category().message(errno) << '\n';
  return 1;
}

}  // namespace weir::cli
