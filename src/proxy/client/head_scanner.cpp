#include "proxy/client/head_scanner.hpp"

#include <string_view>

namespace weir::proxy {

namespace {

// How many empty lines weir skips before a request (RFC 9112 §2.2 requires at least one). With more empty
// lines, the request is malformed.
constexpr unsigned kEmptyLines = 8;

// Returns why weir rejects the head; nullopt if the head has no fault so far. `size`: the size of the head,
// or 0 if the head is incomplete.
std::optional<http::Fault> fault_in(std::string_view unread, std::size_t size, std::size_t most,
                                    std::size_t searched) noexcept {
  if (size == 0 && unread.size() < most) return http::find_early_fault(unread, searched);
  const bool line_ended = unread.substr(0, most).find('\n') != std::string_view::npos;
  return line_ended ? http::Fault{431, "the request head is too large"}
                    : http::Fault{414, "the request target is too long"};
}

}  // namespace

HeadScanner::Found HeadScanner::scan(Inbox& inbox, std::size_t most) {
  if (inbox.empty()) return {};
  if (searched_ == 0)
    for (; empty_lines_ < kEmptyLines && inbox.unread().starts_with("\r\n"); ++empty_lines_) inbox.use(2);
  const auto unread = inbox.unread();
  const auto size = http::find_head_end(unread, searched_);
  if (size != 0 && size <= most) return {.size = size};
  const auto fault = fault_in(unread, size, most, searched_);
  searched_ = unread == "\r" ? 0 : unread.size();
  return {.fault = fault};
}

}  // namespace weir::proxy
