// BodySink is the destination of a relay. It frames a body for one protocol and sends it. A sink belongs to
// one message; only the thread of its connection uses it.
#pragma once

#include "weir/net/stream_error.hpp"
#include "weir/net/task.hpp"

#include <cstdint>
#include <string_view>

namespace weir::proxy {

class BodySink {
 public:
  // Adds the next piece of the body. `piece` must stay valid until flush() has returned true. REQUIRES
  // !is_full().
  virtual void add(std::string_view piece) = 0;
  // Returns true if end() can send trailers.
  [[nodiscard]] virtual bool takes_trailers() const noexcept = 0;
  // Ends the body after its last piece. `trailers`: lines of the trailer section. The sink sends the trailers
  // only if takes_trailers() is true.
  virtual void end(std::string_view trailers) = 0;
  // Returns true if flush() must be called before the next add().
  [[nodiscard]] virtual bool is_full() const noexcept = 0;
  // Returns true if flush() has sent only a part of the bytes that the sink holds.
  [[nodiscard]] virtual bool is_stuck() const noexcept = 0;
  // Sends as much as the peer accepts without waiting. Returns true if all was sent.
  [[nodiscard]] virtual bool flush(net::ErrorCode& ec) = 0;
  // Waits until flush() can send more.
  [[nodiscard]] virtual net::Task<net::ErrorCode> wait_for_room() = 0;
  // Returns true if no byte was sent yet, so that the caller can still send another message instead.
  [[nodiscard]] virtual bool is_untouched() const noexcept = 0;
  // Returns the number of sent bytes, including heads and framing.
  [[nodiscard]] virtual std::uint64_t sent() const noexcept = 0;

 protected:
  ~BodySink() = default;
};

}  // namespace weir::proxy
