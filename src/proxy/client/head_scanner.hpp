// Finds the head of the next request among the octets that have come of a connection. Pure; belongs to one
// head.
#pragma once

#include "weir/http/head_parser.hpp"
#include "weir/proxy/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::proxy {

class HeadScanner {
 public:
  struct Found {
    std::size_t size = 0;  // octets of a whole head at the front of the inbox; 0: none
    // Why what has come need not be waited for, or taken.
    std::optional<http::Fault> fault{};
  };
  // Looks at what is unread, after empty lines ahead of a request, which it skips (RFC 9112 §2.2). `most`:
  // octets that a head may have.
  [[nodiscard]] Found look(Inbox& inbox, std::size_t most);

 private:
  std::size_t searched_ = 0;  // octets in which the head's end is not
  unsigned empty_lines_ = 0;  // skipped
};

}  // namespace weir::proxy
