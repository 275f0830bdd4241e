// From bytes to heads, strictly (RFC 9112): what two readers could take for two different messages is
// refused.
//
// One thing is tolerated, and only in answers: lines that end in a bare LF (RFC 9112 §2.2), because some
// servers write them. Weir writes each line anew, so a client never gets a bare LF.
#pragma once

#include "weir/http/head.hpp"

#include <optional>
#include <string_view>

namespace weir::http {

// Why a message cannot be taken, as the answer to give. `what` is for the client's eyes; static text.
struct Fault {
  unsigned status;
  const char* what;
};

// Looks for the empty line that ends a head. Returns the size of the head with it, or 0 while it is
// incomplete. `from`: how much was searched before.
[[nodiscard]] std::size_t find_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

// Looks for the empty line that ends an answer's head, whose lines may end in a bare LF. Returns what
// find_head_end returns.
[[nodiscard]] std::size_t find_answer_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

// Of a request head that is not whole: why it cannot become a valid one, whatever still comes. Looked at are
// its first octet, its first line and where lines end; all else is the parser's. `from`: how much was looked
// at before.
[[nodiscard]] std::optional<Fault> find_early_fault(std::string_view begun, std::size_t from = 0) noexcept;

// Returns why an answer's head (502) cannot become valid. Looks at its first octets and its first line.
[[nodiscard]] std::optional<Fault> find_early_answer_fault(std::string_view begun,
                                                           std::size_t from = 0) noexcept;

// REQUIRES `bytes` to be exactly one head with its empty line. Fills `head` with views into `bytes`.
[[nodiscard]] std::optional<Fault> parse_request_head(std::string_view bytes, RequestHead& head);

// `to_head`: the answer to a HEAD request, which has no body whatever its fields say. Faults carry status
// 502, or 431 where nothing is wrong so far but that there are more fields or options than are taken.
[[nodiscard]] std::optional<Fault> parse_response_head(std::string_view bytes, bool to_head,
                                                       ResponseHead& head);

}  // namespace weir::http
