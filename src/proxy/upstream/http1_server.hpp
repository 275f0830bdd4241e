// Writes the head of a request to a server as HTTP/1.1 text, and parses the head of the server's answer. For
// a server that speaks HTTP/2, upstream::Http2ServerStream translates both.
#pragma once

#include "proxy/upstream/server_attempt.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::proxy {

// Applies the route's changes to the request that weir forwards. Must be called once, after
// ExchangeContext::name_request() and before the request's head is written. Rules, log and metrics still see
// the client's path and fields, but the dropped fields are marked as not forwarded.
void edit_request(ExchangeContext& context);

// Writes the head of the request into the exchange's buffer `out`. `host`: the host name of the server, used
// if the request names no host.
void write_request_head(ExchangeContext& context, const ServerAttempt& attempt, std::string_view host);

// Reads the head of one server's answer, after any interim answers. Lives in the coroutine frame of
// UpstreamExchange::exchange_heads().
class AnswerHeadReader {
 public:
  // Both arguments must outlive the reader. The constructor drops the octets of an earlier answer.
  AnswerHeadReader(ExchangeContext& context, ServerAttempt& attempt);

  enum class State : std::uint8_t {
    Missing,  // more octets are needed
    Interim,  // `response` is a 1xx; another head follows
    Whole,    // `response` is the answer's head; the body follows
    Faulty,   // the attempt's `error` describes the fault
  };
  // Parses the received octets. `request_sent`: true if the whole request was sent to the server.
  [[nodiscard]] State parse(bool request_sent);
  // Reads from the server. Returns would_block if no octet has arrived.
  [[nodiscard]] net::ErrorCode receive();

 private:
  void read_body_framing(bool to_head) noexcept;
  [[nodiscard]] State judge_unfinished(std::size_t size);
  [[nodiscard]] bool may_upgrade(bool request_sent);
  [[nodiscard]] State fail(std::string_view what, bool oversized = false);

  ExchangeContext& context_;
  ServerAttempt& attempt_;
  std::size_t searched_ = 0;  // octets already searched without finding the end of the head
};

}  // namespace weir::proxy
