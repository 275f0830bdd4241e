// Parses heads strictly (RFC 9112): rejects every message that two readers could interpret differently.
//
// Responses may also have lines that end in a bare LF (RFC 9112 §2.2), because some servers write such lines.
// A client never receives a bare LF, because weir writes each line anew.
#pragma once

#include "weir/http/head.hpp"

#include <optional>
#include <string_view>

namespace weir::http {

// The reason why weir rejects a message, and the status of weir's answer. `what` is a static text for the
// client.
struct Fault {
  unsigned status;
  const char* what;
};

// Finds the empty line that ends a request head. Returns the size of the head including that line, or 0 if
// the head is incomplete. `from`: the number of octets that an earlier call has searched already.
[[nodiscard]] std::size_t find_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

// Like find_head_end(), for a response head, whose lines may end in a bare LF.
[[nodiscard]] std::size_t find_answer_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

// Returns why an incomplete request head can never become valid; nullopt if it may become valid. Checks only
// the first octet, the first line and line ends. `from`: the number of octets that an earlier call has
// checked already.
[[nodiscard]] std::optional<Fault> find_early_fault(std::string_view begun, std::size_t from = 0) noexcept;

// Like find_early_fault(), but for an incomplete response head. Faults have status 502. Checks only the first
// octets and the first line.
[[nodiscard]] std::optional<Fault> find_early_answer_fault(std::string_view begun,
                                                           std::size_t from = 0) noexcept;

// Fills `head` with views into `bytes`. Returns a fault if weir rejects the head. REQUIRES: `bytes` is
// exactly one head, including its empty line.
[[nodiscard]] std::optional<Fault> parse_request_head(std::string_view bytes, RequestHead& head);

// Fills `head` with views into `bytes`, like parse_request_head(). `to_head`: the request's method was HEAD,
// so the response has no body whatever its fields say. Faults have status 502, or 431 if the only fault is
// too many fields or options.
[[nodiscard]] std::optional<Fault> parse_response_head(std::string_view bytes, bool to_head,
                                                       ResponseHead& head);

}  // namespace weir::http
