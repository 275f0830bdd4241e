// A redis-server of the test's own: a unix socket in a folder of its own, nothing persistent, gone with the
// object.
#pragma once

#include "redis/connection/resp.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace weir::redis {

// A blocking connection.
class Connection {
 public:
  explicit Connection(const std::string& path);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool connected() const noexcept { return connected_; }

  Reply ask(const std::vector<std::string>& words);
  // Sends what commands make, and reads their replies.
  std::vector<Reply> exchange(std::string_view commands, std::size_t replies);

 private:
  ReplyReader reader_;
  int fd_;
  bool connected_;
};

class Server {
 public:
  // `options` as on the command line: {"--requirepass", "secret"}.
  explicit Server(std::vector<std::string> options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  void start();   // returns once it answers
  void kill();    // SIGKILL
  void freeze();  // SIGSTOP
  void thaw();    // SIGCONT

  // One command on a connection of its own, and its reply.
  Reply ask(const std::vector<std::string>& words) const;
  // A line of INFO: info("commandstats", "cmdstat_evalsha") is what stands after "cmdstat_evalsha:".
  [[nodiscard]] std::string info(const std::string& section, const std::string& name) const;

 private:
  std::string folder_;
  std::string path_;
  std::vector<std::string> options_;
  pid_t process_ = -1;
};

// A TCP port on 127.0.0.1 that is free at the moment, of those that the kernel gives to no connection.
[[nodiscard]] unsigned short free_port();

// A server with the options that this makes. They name ports that others may take before it does: then it is
// tried again with others.
[[nodiscard]] std::unique_ptr<Server> start_on_ports(
    const std::function<std::vector<std::string>()>& options);

}  // namespace weir::redis
