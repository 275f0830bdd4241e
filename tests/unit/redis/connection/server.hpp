// A redis-server for one test. The server listens on a unix socket in its own folder, stores nothing on disk,
// and stops when the object is destroyed.
#pragma once

#include "redis/connection/resp.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace weir::redis {

// A connection whose functions block until the reply has arrived.
class Connection {
 public:
  explicit Connection(const std::string& path);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool connected() const noexcept { return connected_; }

  Reply ask(const std::vector<std::string>& words);
  // Sends serialized commands. Waits for `replies` replies and returns them.
  std::vector<Reply> exchange(std::string_view commands, std::size_t replies);

 private:
  ReplyReader reader_;
  int fd_;
  bool connected_;
};

class Server {
 public:
  // `options`: command-line options of redis-server, such as {"--requirepass", "secret"}.
  explicit Server(std::vector<std::string> options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  void start();   // starts the server and waits until it answers
  void kill();    // sends SIGKILL
  void freeze();  // sends SIGSTOP
  void thaw();    // sends SIGCONT

  // Sends one command on a new connection and returns its reply.
  Reply ask(const std::vector<std::string>& words) const;
  // Returns the value of a field of INFO: for info("commandstats", "cmdstat_evalsha"), the text after
  // "cmdstat_evalsha:".
  [[nodiscard]] std::string info(const std::string& section, const std::string& name) const;

 private:
  std::string folder_;
  std::string path_;
  std::vector<std::string> options_;
  pid_t process_ = -1;
};

// Returns a free TCP port of 127.0.0.1 that the kernel does not use for outgoing connections.
[[nodiscard]] unsigned short free_port();

// Starts a server with the options that `options` returns. The options contain ports. If another process has
// taken a port in the meantime, this function calls `options` again and retries.
[[nodiscard]] std::unique_ptr<Server> start_on_ports(
    const std::function<std::vector<std::string>()>& options);

}  // namespace weir::redis
