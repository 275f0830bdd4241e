// ByteReader reads octets from a source, and waits while the source has none. Implementations: a connection,
// and one stream of an HTTP/2 connection. Belongs to one worker.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"

#include <cstddef>

namespace weir::net {

class ByteReader {
 public:
  // Reads at most `size` octets to `at`. Waits until at least one octet is available. Returns 0 only with an
  // error; at the end of the octets the error is eof. REQUIRES size > 0.
  [[nodiscard]] virtual Task<std::size_t> read_some(char* at, std::size_t size, ErrorCode& ec) = 0;

 protected:
  ~ByteReader() = default;
};

}  // namespace weir::net
