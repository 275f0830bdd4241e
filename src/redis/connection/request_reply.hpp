// A connection that sends one command at a time and waits for its reply. Used for commands that no client's
// request waits for. Examples are the commands to Sentinels, the query for a cluster's slots, and the
// commands of `weir redis-check`.
//
// Belongs to the thread of one io_context. Every wait ends after `patience`. why() describes the last error.
#pragma once

#include "redis/connection/resp.hpp"
#include "redis/connection/tls.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace weir::redis {

class RequestReply {
 public:
  // `tls`: null for a connection without TLS.
  RequestReply(net::Executor executor, base::Duration patience, std::shared_ptr<TlsClient> tls = nullptr);
  ~RequestReply();  // closes the connection
  RequestReply(const RequestReply&) = delete;
  RequestReply& operator=(const RequestReply&) = delete;

  // Closes the current connection and resolves the name in `address`. Connects to the first resolved address
  // that accepts the connection. `address` must outlive the coroutine.
  [[nodiscard]] net::Task<net::ErrorCode> open(const base::Endpoint& address);
  // Sends a command and waits for its reply. `command` must outlive the coroutine. Returns no error if Redis
  // replies with an error; the caller must check the reply.
  [[nodiscard]] net::Task<net::ErrorCode> ask(std::string_view command);
  // Waits for the next reply. The connection remains usable after StoreError::Timeout.
  [[nodiscard]] net::Task<net::ErrorCode> receive();
  [[nodiscard]] net::Task<net::ErrorCode> send(std::string_view bytes);

  [[nodiscard]] const Reply& reply() const noexcept { return reader_.reply(); }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // Ends all waits and closes the connection.
  void close() noexcept;

 private:
  // State that this object shares with the handler of the deadline's timer, because the handler may run after
  // this object is destroyed.
  struct Link;

  void arm();
  [[nodiscard]] net::ErrorCode disarm(net::ErrorCode ec);
  [[nodiscard]] net::Task<net::ErrorCode> read_reply();

  const std::shared_ptr<Link> link_;
  const base::Duration patience_;
  std::string why_;
  ReplyReader reader_;
  std::array<char, 4096> input_;
};

}  // namespace weir::redis
