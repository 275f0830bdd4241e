// ByteStream carries octets both ways. Implementations: a connection (Stream), one request to an HTTP/2
// server, which looks like a connection of HTTP/1.1, and a WebSocket of an HTTP/2 client. Belongs to one
// worker.
#pragma once

#include "weir/net/byte_reader.hpp"
#include "weir/net/reactor.hpp"

#include <cstddef>
#include <string_view>

namespace weir::net {

class ByteStream : public ByteReader {
 public:
  // Reads available octets. Returns 0 only with an error: eof at the end, would_block if no octets are
  // available. REQUIRES size > 0.
  [[nodiscard]] virtual std::size_t try_read(char* at, std::size_t size, ErrorCode& ec) = 0;

  // Starts to send a text (a sequence of octets) that consists of `first` and then `second`. Sends as much as
  // the peer accepts at once. Returns the number of octets sent, which is 0 without an error if the peer
  // accepts none.
  [[nodiscard]] virtual std::size_t try_write(std::string_view first, std::string_view second,
                                              ErrorCode& ec) = 0;
  // Continues the text that try_write() began. `first` and `second` together must start with the octets of
  // that text that were not sent. Further octets may follow, and then belong to the text. Returns the number
  // of octets sent.
  [[nodiscard]] virtual std::size_t try_rest(std::string_view first, std::string_view second,
                                             ErrorCode& ec) = 0;
  // Returns true if only a part of a text was sent, so that the rest must still be sent.
  [[nodiscard]] virtual bool owes_write() const noexcept = 0;

  // Waits until try_read() can return octets or the end of the stream.
  [[nodiscard]] virtual Port::Wait wait_readable() noexcept = 0;
  // Waits until try_rest() can continue.
  [[nodiscard]] virtual Port::Wait wait_writable() noexcept = 0;
  // Ends the waits of wait_readable() and wait_writable() with operation_aborted.
  virtual void cancel() noexcept = 0;

 protected:
  ~ByteStream() = default;
};

// A ByteStream whose two directions end separately, so that it can be one side of a tunnel.
class DuplexStream : public ByteStream {
 public:
  // Ends the sending side. Reading remains possible. If owes_write() is true afterwards, wait_writable()
  // waits until the stream can send the end.
  virtual void shutdown_send() noexcept = 0;
  // Frees memory that an idle stream does not need.
  virtual void trim() noexcept = 0;

 protected:
  ~DuplexStream() = default;
};

}  // namespace weir::net
