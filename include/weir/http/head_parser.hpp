// Parses heads strictly (RFC 9112): rejects every message that two readers could interpret differently.
//
// Responses are an exception: their lines may end in a bare LF (RFC 9112 §2.2), because some servers write
// that. A client never receives a bare LF, because weir writes each line anew.
#pragma once

#include "weir/http/head.hpp"

#include <optional>
#include <string_view>

namespace weir::http {

// Why a message is rejected, and the status to answer with. `what` is a static text for the client.
struct Fault {
  unsigned status;
  const char* what;
};

// Finds the empty line that ends a request head. Returns the size of the head including it, or 0 if the head
// is incomplete. `from` is the number of octets that were searched before.
[[nodiscard]] std::size_t find_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

// The same for a response head, whose lines may end in a bare LF.
[[nodiscard]] std::size_t find_answer_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

// Returns why an incomplete request head cannot become valid, or nullopt. Checks only the first octet, the
// first line and line ends. `from` is the number of octets that were checked before.
[[nodiscard]] std::optional<Fault> find_early_fault(std::string_view begun, std::size_t from = 0) noexcept;

// The same for an incomplete response head (502). Checks only its first octets and its first line.
[[nodiscard]] std::optional<Fault> find_early_answer_fault(std::string_view begun,
                                                           std::size_t from = 0) noexcept;

// Fills `head` with views into `bytes`. REQUIRES: `bytes` is exactly one head, including its empty line.
[[nodiscard]] std::optional<Fault> parse_request_head(std::string_view bytes, RequestHead& head);

// `to_head`: the response to a HEAD request, which has no body whatever its fields say. Faults have status
// 502, or 431 if the only fault is that there are too many fields or options.
[[nodiscard]] std::optional<Fault> parse_response_head(std::string_view bytes, bool to_head,
                                                       ResponseHead& head);

}  // namespace weir::http
