// What goes on: the heads that weir writes from the heads it read (RFC 9110 §7.6).
#pragma once

#include "weir/http/field_names.hpp"
#include "weir/http/head.hpp"

#include <string>
#include <string_view>

namespace weir::http {

// What weir adds to a forwarded request.
struct ForwardedBy {
  std::string_view peer;        // the address at the other end, as text; empty: none (a unix socket)
  std::string_view proto;       // "http" or "https"
  std::string_view request_id;  // used unless a trusted peer sent one
  bool peer_trusted = false;    // its X-Forwarded-* are continued; anybody else's are replaced
  bool told_by_forwarded =
      false;                   // it says who is asking in Forwarded: its X-Forwarded-For is anybody's word
  bool add_forwarded = false;  // writes Forwarded (RFC 7239) as well
  bool underscores = false;    // fields whose names contain '_' go on
  const FieldNames* trusted_fields = nullptr;  // not forwarded unless the peer is trusted; null: none
  // The answer is to be read on its way: no coding of it is accepted (RFC 9110 §12.5.3), no part asked for.
  bool whole_and_plain = false;
  std::string_view upgrade{};  // the protocol to ask for; empty: none
  std::string_view host{};     // what Host says of a request that names none: the server's
};

// Appends the head of the request for the upstream: same method and target, HTTP/1.1, hop-by-hop fields gone,
// forwarding fields and Via added, framing as the body will be sent. Names with underscores are left out
// unless asked for: CGI (RFC 3875 §4.1.18) and its heirs take them for the names with hyphens, which weir
// rewrites and counts by. REQUIRES that Max-Forwards, where it counts, is not used up.
void write_request_head(std::string& out, const RequestHead& head, const ForwardedBy& by);

// How the response goes to the client.
struct ResponseForm {
  Framing framing = Framing::None;  // UntilClose: to HTTP/1.0 clients
  bool keep_alive = true;
  unsigned client_minor_version = 1;
};

// Appends the head of the response for the client. `extra`: complete field lines to add. `date`: when it
// came, for one that does not say when it was made (RFC 9110 §6.6.1).
void write_response_head(std::string& out, const ResponseHead& head, const ResponseForm& form,
                         std::string_view extra, std::string_view date);

// The head of a 101 for the client: of the upstream's what is not hop-by-hop, the protocol
// (http/upgrade.hpp), and `extra`.
void write_switch_head(std::string& out, const ResponseHead& head, std::string_view protocol,
                       std::string_view extra);

// A head of 1xx goes on as it is, hop-by-hop fields excepted.
void write_interim_head(std::string& out, const ResponseHead& head);

// How a response with this head can be framed for this client.
[[nodiscard]] ResponseForm response_form(const RequestHead& request, const ResponseHead& response,
                                         bool keep_alive) noexcept;

void append_number(std::string& out, std::uint64_t number);

}  // namespace weir::http
