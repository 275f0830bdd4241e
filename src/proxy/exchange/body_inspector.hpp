// Reads a request's body into memory before the decision, for the rules that need it. The body is then
// forwarded unchanged. An inspector lives in the coroutine frame of Exchange::inspect().
//
// A body that no rule needs is not buffered. The exchange first evaluates the rules that need no body. If
// they refuse the request, weir does not read its body. The request does not count as in flight while weir
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
  // `context` must outlive this object.
  explicit BodyInspector(ExchangeContext& context) noexcept;

  // Passes the part of the body that has arrived to the rules. Returns false if read() must read the body
  // first.
  [[nodiscard]] bool show_at_hand();
  // Reads the body and passes it to the rules. Returns an outcome if the request must end instead. In that
  // case nothing was charged, and weir does not wait for the rest of the body.
  [[nodiscard]] net::Task<std::optional<Outcome>> read();

 private:
  void read_values();
  [[nodiscard]] net::Task<BodySource::Status> gather();
  [[nodiscard]] net::Task<bool> wait_for_more();
  [[nodiscard]] net::Task<bool> send_continue();
  [[nodiscard]] Outcome give_up(BodySource::Status status);

  ExchangeContext& context_;
  const std::uint64_t wanted_;     // how many octets the rules read; 0: no rule reads the body
  const std::uint64_t most_;       // wanted_, or max_body_memory if that is less
  bool no_memory_ = false;         // true if the bodies of other requests use all the memory
  std::string_view rest_of_body_;  // the piece of the body that did not fit into memory
  bool slow_ = false;              // true if the body arrives slower than min_rate
};

// Frees the copy of the body that was made for the rules. Must be called only after the body was sent and no
// retry can need it.
void release_body(ExchangeBuffers& buffers) noexcept;

}  // namespace weir::proxy
