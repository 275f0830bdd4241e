// Reads the state of a client's own limits, for a route with `respond = "usage"`. Charges nothing, and
// creates no key. Lives in the coroutine frame of Exchange::show_usage().
#pragma once

#include "proxy/exchange/exchange_context.hpp"

#include "weir/net/task.hpp"
#include "weir/policy/usage.hpp"

#include <vector>

namespace weir::proxy {

class Usage {
 public:
  // `context` must outlive this object.
  explicit Usage(ExchangeContext& context) noexcept : context_(context) {}

  // Reads the limits from the key table and from Redis. After Redis has failed to answer once, does not ask
  // Redis again. The answer then contains no numbers for the limits in Redis.
  [[nodiscard]] net::Task<void> read();
  // Appends the answer's body.
  void write(std::string& body) const { policy::append_usage_json(body, lines_); }

 private:
  ExchangeContext& context_;
  std::vector<policy::ClientLimit> lines_;
};

}  // namespace weir::proxy
