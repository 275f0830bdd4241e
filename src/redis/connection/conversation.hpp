// A connection on which one thing is asked at a time and its answer awaited: for what is asked off the path
// of requests, of Sentinels and by `weir redis-check`.
//
// Belongs to one io_context's thread. Every wait ends after `patience`. Errors have a sentence in why().
#pragma once

#include "redis/connection/resp.hpp"
#include "redis/connection/tls.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace weir::redis {

class Conversation {
 public:
  // `tls`: null for plain.
  Conversation(net::Executor executor, base::Duration patience, std::shared_ptr<TlsClient> tls = nullptr);
  ~Conversation();  // closes
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Closes what was open and connects, to the first address of the name that lets us. `address` outlives it.
  [[nodiscard]] net::Awaitable<net::ErrorCode> open(const base::Endpoint& address);
  // Sends a command and hears its reply; the bytes outlive it. An error reply is no error.
  [[nodiscard]] net::Awaitable<net::ErrorCode> ask(std::string_view command);
  // The next reply. After StoreError::Timeout the connection may be used on.
  [[nodiscard]] net::Awaitable<net::ErrorCode> hear();
  [[nodiscard]] net::Awaitable<net::ErrorCode> say(std::string_view bytes);

  [[nodiscard]] const Reply& reply() const noexcept { return reader_.reply(); }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // Ends whatever waits.
  void close() noexcept;

 private:
  // What the deadline's handler shares with us: it may run after we have gone.
  struct Line;

  void arm();
  [[nodiscard]] net::ErrorCode disarm(net::ErrorCode ec);
  [[nodiscard]] net::Awaitable<net::ErrorCode> read_reply();

  const std::shared_ptr<Line> line_;
  const base::Duration patience_;
  std::string why_;
  ReplyReader reader_;
  std::array<char, 4096> input_;
};

}  // namespace weir::redis
