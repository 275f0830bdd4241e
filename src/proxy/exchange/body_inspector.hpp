// Reads a request's body into memory before the decision, for the rules that look at it. The body is then
// forwarded unchanged.
//
// A body that no rule looks at is not buffered. The exchange first evaluates the rules that need no body, so
// that weir reads no body of a request that they refuse. The request does not count as in flight while weir
// reads the body, so that slow bodies do not displace other requests.
//
// Bounds: `max_body` of the rules; [server] max_body_memory for all bodies together; body_timeout; min_rate.
#pragma once

#include "proxy/exchange/exchange_context.hpp"

#include "weir/net/task.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::proxy {

class BodyInspector {
 public:
  // `context` outlives it.
  explicit BodyInspector(ExchangeContext& context) noexcept;

  // Shows the rules the part of the body that has arrived. Returns false if read() must read the body first.
  [[nodiscard]] bool show_at_hand();
  // Reads the body and shows it to the rules. Returns an outcome if the request must end instead. In that
  // case nothing was charged, and weir does not wait for the rest of the body.
  [[nodiscard]] net::Task<std::optional<Outcome>> read();

 private:
  [[nodiscard]] net::Task<BodySource::Status> gather();
  [[nodiscard]] net::Task<bool> wait_for_more();
  [[nodiscard]] net::Task<bool> send_continue();
  [[nodiscard]] Outcome give_up(BodySource::Status status);

  ExchangeContext& context_;
  const std::uint64_t wanted_;  // octets that the rules look at; 0: no rule looks at the body
  const std::uint64_t most_;    // the same, bounded by max_body_memory
  bool no_memory_ = false;      // other bodies use all the memory
  std::string_view unheld_;     // the piece of the body that did not fit into memory
  bool slow_ = false;           // the body arrives slower than min_rate
};

// Frees the copy of the body that rules saw. Must be called only once the body was sent and needs no retry.
void release_body(ExchangeBuffers& buffers) noexcept;

}  // namespace weir::proxy
