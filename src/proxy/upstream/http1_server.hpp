// HTTP/1.1 towards servers: the request's head as text, and the answer's head off the connection's octets.
// What judges, retries and relays sees only parsed heads and bodies.
#pragma once

#include "proxy/upstream/server_attempt.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::proxy {

// Writes the head of the request into the exchange's `out`. `host`: of the server, for a request that names
// none.
void write_request_head(ExchangeContext& context, const ServerAttempt& attempt, std::string_view host);

// Reads the head of one server's answer, interim answers first.
class AnswerHeadReader {
 public:
  // Both outlive it. Drops what came of an earlier answer.
  AnswerHeadReader(ExchangeContext& context, ServerAttempt& attempt);

  enum class State : std::uint8_t {
    Missing,  // more octets have to come
    Interim,  // `response` is a 1xx, and another head follows
    Whole,    // `response` is the answer's head; what follows it is its body
    Faulty,   // the attempt says what is wrong with it
  };
  // `request_sent`: the server has the whole request.
  [[nodiscard]] State look(bool request_sent);
  // Takes what has come: would_block if nothing has.
  [[nodiscard]] net::ErrorCode receive();

 private:
  [[nodiscard]] State judge_unfinished(std::size_t size);
  [[nodiscard]] bool may_upgrade(bool request_sent);
  [[nodiscard]] State fail(std::string_view what, bool oversized = false);

  ExchangeContext& context_;
  ServerAttempt& attempt_;
  std::size_t searched_ = 0;  // octets in which the head's end is not
};

}  // namespace weir::proxy
