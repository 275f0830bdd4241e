// Where a relay puts a body: the framing of a protocol, and the sending of it.
#pragma once

#include "weir/net/stream_error.hpp"
#include "weir/net/task.hpp"

#include <cstdint>
#include <string_view>

namespace weir::proxy {

class BodySink {
 public:
  // Takes the next piece of the body. The text must stay valid until flush() has returned true. REQUIRES
  // !is_full().
  virtual void add(std::string_view piece) = 0;
  // The body is complete.
  virtual void end() = 0;
  // Returns true if the sink has to be flushed before it takes more.
  [[nodiscard]] virtual bool is_full() const noexcept = 0;
  // Returns true if a part of what it holds was sent, and the rest was not.
  [[nodiscard]] virtual bool is_stuck() const noexcept = 0;
  // Sends as much as it can at once. Returns true if all was sent.
  [[nodiscard]] virtual bool flush(net::ErrorCode& ec) = 0;
  // Waits until flush() can go on.
  [[nodiscard]] virtual net::Task<net::ErrorCode> wait_for_room() = 0;
  // Returns true if no octet is on its way, so that something else can still be sent.
  [[nodiscard]] virtual bool is_untouched() const noexcept = 0;
  // Octets that were sent, heads and framing included.
  [[nodiscard]] virtual std::uint64_t sent() const noexcept = 0;

 protected:
  ~BodySink() = default;
};

}  // namespace weir::proxy
