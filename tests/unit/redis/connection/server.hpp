// A redis-server for one test: a unix socket in its own folder, without persistence, stopped with the object.
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
  // Sends serialized commands and reads their replies.
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

  void start();   // returns once the server answers
  void kill();    // SIGKILL
  void freeze();  // SIGSTOP
  void thaw();    // SIGCONT

  // Sends one command on a new connection and returns its reply.
  Reply ask(const std::vector<std::string>& words) const;
  // Returns the rest of a line of INFO: info("commandstats", "cmdstat_evalsha") returns the text after
  // "cmdstat_evalsha:".
  [[nodiscard]] std::string info(const std::string& section, const std::string& name) const;

 private:
  std::string folder_;
  std::string path_;
  std::vector<std::string> options_;
  pid_t process_ = -1;
};

// Returns a TCP port on 127.0.0.1 that is free now, outside the range that the kernel gives to connections.
[[nodiscard]] unsigned short free_port();

// Starts a server with the options that `options` returns. They name ports, which other processes may take
// first; then it tries again with new options.
[[nodiscard]] std::unique_ptr<Server> start_on_ports(
    const std::function<std::vector<std::string>()>& options);

}  // namespace weir::redis
