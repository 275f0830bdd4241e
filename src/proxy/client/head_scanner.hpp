// Finds the head of the next request in the octets that a connection has received. Pure. One object scans for
// one head.
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
    std::size_t size = 0;  // octets of the complete head at the front of the inbox; 0: none
    // The reason why weir rejects the received octets without waiting for more.
    std::optional<http::Fault> fault{};
  };
  // Searches the unread octets, and skips empty lines before the request (RFC 9112 §2.2). `most`: the largest
  // allowed size of a head in octets.
  [[nodiscard]] Found scan(Inbox& inbox, std::size_t most);

 private:
  std::size_t searched_ = 0;  // octets already searched without finding the end of the head
  unsigned empty_lines_ = 0;  // empty lines skipped so far
};

}  // namespace weir::proxy
