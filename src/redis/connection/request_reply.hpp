// A connection with one command at a time, whose reply the caller awaits. It serves commands that no client's
// request waits for: those to Sentinels, and those of `weir redis-check`.
//
// Belongs to one io_context's thread. Every wait ends after `patience`. why() describes the last error.
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
  ~RequestReply();  // closes
  RequestReply(const RequestReply&) = delete;
  RequestReply& operator=(const RequestReply&) = delete;

  // Closes the current connection and connects to the first address of the name that accepts. `address` must
  // outlive the coroutine.
  [[nodiscard]] net::Task<net::ErrorCode> open(const base::Endpoint& address);
  // Sends a command and waits for its reply. `command` must outlive the coroutine. An error reply is a reply,
  // not an error.
  [[nodiscard]] net::Task<net::ErrorCode> ask(std::string_view command);
  // Waits for the next reply. After StoreError::Timeout the connection remains usable.
  [[nodiscard]] net::Task<net::ErrorCode> hear();
  [[nodiscard]] net::Task<net::ErrorCode> say(std::string_view bytes);

  [[nodiscard]] const Reply& reply() const noexcept { return reader_.reply(); }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // Ends all waits.
  void close() noexcept;

 private:
  // The state that the deadline's handler shares with this object, because the handler may run after the
  // object is destroyed.
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
