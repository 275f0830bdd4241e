// Writes the heads that weir forwards (RFC 9110 §7.6), from heads that weir has parsed.
#pragma once

#include "weir/http/field_names.hpp"
#include "weir/http/head.hpp"

#include <string>
#include <string_view>

namespace weir::http {

// The facts that weir needs to forward a request's head, besides the received head.
struct ForwardedBy {
  std::string_view peer;        // the peer's IP address as text; empty for a unix socket
  std::string_view proto;       // "http" or "https"
  std::string_view request_id;  // value of X-Request-ID, unless a trusted peer sent that field
  // true: weir keeps this peer's X-Forwarded-* fields; false: weir replaces them
  bool peer_trusted = false;
  // True: the peer names the client in Forwarded, so weir does not trust the peer's X-Forwarded-For.
  bool uses_forwarded = false;
  bool add_forwarded = false;                  // true: weir also writes Forwarded (RFC 7239)
  bool underscores = false;                    // true: weir also forwards fields whose names contain '_'
  const FieldNames* trusted_fields = nullptr;  // fields that only trusted peers may send; null: none
  // True: weir itself will read the response, which must be whole and not encoded. So weir asks the
  // server for the identity coding (RFC 9110 §12.5.3), and does not ask for a range.
  bool whole_and_plain = false;
  std::string_view upgrade{};  // the protocol to request in Upgrade; empty: none
  std::string_view path{};     // the path to forward; empty: the target as it was received
  std::string_view added{};    // complete lines of further fields
  std::string_view host{};     // the value of Host; empty: the request's own
};

// Appends the head of the request to the upstream.
// - The method is unchanged. The target is unchanged unless `path` is set, but an absolute-form target
//   becomes the origin-form. The version is HTTP/1.1. Hop-by-hop fields are left out.
// - Adds the forwarding fields, Via, and the framing that weir uses for the body.
// - Omits names with underscores unless `underscores` is set, because CGI programs (RFC 3875 §4.1.18) cannot
//   tell "X_Y" from "X-Y".
//
// REQUIRES: Max-Forwards, if it applies, is not 0.
void write_request_head(std::string& out, const RequestHead& head, const ForwardedBy& by);

// Removes the expectation of 100 Continue (RFC 9110 §10.1.1), so that write_request_head() does not forward
// it.
void remove_expectation(RequestHead& head) noexcept;

// How weir sends a response to the client: the framing of the body, and whether the connection stays open.
struct ResponseForm {
  // how the end of the body is found; a client of HTTP/1.0 gets UntilClose instead of Chunked
  Framing framing = Framing::None;
  bool keep_alive = true;
  unsigned client_minor_version = 1;
};

// Appends the head of the response to the client, and the field lines of `extra`. `date` must be the time at
// which weir received the response. The head gets this date if the response has no Date (RFC 9110 §6.6.1).
void write_response_head(std::string& out, const ResponseHead& head, const ResponseForm& form,
                         std::string_view extra, std::string_view date);

// Appends the head of a 101 response to the client: the end-to-end fields of the upstream's response, the new
// protocol (http/upgrade.hpp), and `extra`.
void write_switch_head(std::string& out, const ResponseHead& head, std::string_view protocol,
                       std::string_view extra);

// Appends a 1xx head without its hop-by-hop fields.
void write_interim_head(std::string& out, const ResponseHead& head);

// Returns how weir sends `response` to the client that sent `request`. `keep_alive`: false if the connection
// to the client must close in any case.
[[nodiscard]] ResponseForm response_form(const RequestHead& request, const ResponseHead& response,
                                         bool keep_alive) noexcept;

void append_number(std::string& out, std::uint64_t number);

}  // namespace weir::http
