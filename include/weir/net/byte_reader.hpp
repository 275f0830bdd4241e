// ByteReader gives octets in order, and waits for them: a connection, or one stream of an HTTP/2 connection.
#pragma once

#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"

#include <cstddef>

namespace weir::net {

class ByteReader {
 public:
  // Reads at most `size` octets to `at`, and waits for the first. Returns 0 only with an error: eof at the
  // end. REQUIRES size > 0.
  [[nodiscard]] virtual Task<std::size_t> read_some(char* at, std::size_t size, ErrorCode& ec) = 0;

 protected:
  ~ByteReader() = default;
};

}  // namespace weir::net
