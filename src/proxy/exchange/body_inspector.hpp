// Shows a request's body to the rules that look at it, before the decision: up to their bound it is read into
// memory, and goes on from there unchanged.
//
// Requests whose body no rule looks at pass through untouched. The exchange asks the other rules first, so
// that no body is read for nothing. All this comes before the request counts as under way, so that slow
// bodies crowd nobody out.
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

  // Shows what can be seen without waiting. Returns false if the body has to be read first, by read().
  [[nodiscard]] bool show_at_hand();
  // Reads the body and shows it. Returns an outcome instead if the request is over: nothing was charged, and
  // what may still come of the body is not waited for.
  [[nodiscard]] net::Task<std::optional<Outcome>> read();

 private:
  [[nodiscard]] net::Task<BodySource::Status> gather();
  [[nodiscard]] net::Task<bool> wait_for_more();
  [[nodiscard]] net::Task<bool> send_continue();
  [[nodiscard]] Outcome give_up(BodySource::Status status);

  ExchangeContext& context_;
  const std::uint64_t wanted_;  // octets that some rule looks at; 0: none does
  const std::uint64_t most_;    // the same, bounded by max_body_memory
  bool no_memory_ = false;      // other bodies leave this one no memory
  std::string_view unheld_;     // the piece of the body that memory did not hold
  bool slow_ = false;           // the body comes slower than min_rate
};

// Drops the copy of the body that rules saw: it was sent on, and is not sent again.
void release_body(ExchangeBuffers& buffers) noexcept;

}  // namespace weir::proxy
