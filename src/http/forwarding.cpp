#include "weir/http/forwarding.hpp"

#include "weir/base/text_writer.hpp"

#include <utility>

namespace weir::http {

using namespace std::string_view_literals;

namespace {

using base::TextWriter;

// An upper bound, in octets, for the constant words and the numbers in a head.
constexpr std::size_t kFixedPart = 512;

const char* end_of(std::string_view text) noexcept {
  return text.data() + text.size();
}

// Returns an upper bound for the length of all field lines together.
std::size_t most_of(const Fields& fields) noexcept {
  std::size_t sum = 0;
  for (const auto& field : fields) sum += field.name.size() + field.value.size() + 4;  // 4: ": " and CRLF
  return sum;
}

// Copies the received octets from `begin` to the name of the field `last`, then writes the line of `last` in
// normal form.
void append_piece(TextWriter& out, const char* begin, const Field& last) {
  out << std::string_view(begin, static_cast<std::size_t>(last.name.data() - begin)) << last.name << ": "
      << last.value << "\r\n";
}

// Returns true if the received line of `field` is in normal form and the line of `next` follows directly. The
// octet before `next` is always the LF of a line end. The octet before that LF may be white space instead of
// a CR.
bool adjoins(const Field& field, const Field& next) noexcept {
  return field.value.data() == end_of(field.name) + 2 && end_of(field.name)[1] == ' ' &&
         next.name.data() == end_of(field.value) + 2 && *end_of(field.value) == '\r';
}

// Writes the lines of those fields for which `goes_on` returns true. Adjacent lines are copied in one piece.
template <class Continues>
void copy_lines(TextWriter& out, const Fields& fields, Continues goes_on) {
  const char* run = nullptr;  // where the current piece begins
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& field = fields[i];
    const bool goes = goes_on(field);
    if (!goes || (run != nullptr && !adjoins(fields[i - 1], field))) {
      if (run != nullptr) append_piece(out, run, fields[i - 1]);
      run = nullptr;
    }
    if (goes && run == nullptr) run = field.name.data();
  }
  if (run != nullptr) append_piece(out, run, fields.back());
}

// Writes all values of the fields with this ID as one list (RFC 9110 §5.3), each value followed by ", ".
void append_list(TextWriter& out, const Fields& fields, FieldId id) {
  for (const auto& field : fields)
    if (field.id == id && !field.value.empty()) out << field.value << ", ";
}

// Returns true for fields that weir does not copy but writes itself.
bool rewritten(FieldId id, bool peer_trusted) noexcept {
  switch (id) {
    case FieldId::Host:
    case FieldId::ContentLength:
    case FieldId::TransferEncoding:
    case FieldId::XForwardedFor:
    case FieldId::Via:
      return true;
    case FieldId::Forwarded:
    case FieldId::XForwardedHost:
    case FieldId::XForwardedProto:
    case FieldId::XRequestId:
      return !peer_trusted;
    default:
      return false;
  }
}

// Returns true for a field name with '_'. Looks only at fields that weir does not know, because no known
// field has an underscore in its name.
bool has_underscore(const Field& field) noexcept {
  return field.id == FieldId::Other && field.name.find('_') != std::string_view::npos;
}

// Returns true for request fields that ask the server for a certain coding of the response, or for a part of
// it.
bool asks_for_form(const Field& field) noexcept {
  return field.id == FieldId::Other &&
         (equal_ignoring_case(field.name, "Accept-Encoding") || equal_ignoring_case(field.name, "Range") ||
          equal_ignoring_case(field.name, "If-Range"));
}

void append_forwarded(TextWriter& out, const RequestHead& head, const ForwardedBy& by) {
  const bool v6 = by.peer.find(':') != std::string_view::npos;
  out << "Forwarded: for=" << (v6 ? "\"["sv : ""sv) << (by.peer.empty() ? "unknown"sv : by.peer)
      << (v6 ? "]\""sv : ""sv) << ";proto=" << by.proto << ";host=\"" << head.authority << "\"\r\n";
}

// Writes X-Forwarded-For: the addresses that a trusted peer sent, then the peer's address. Writes no line if
// there are no addresses.
void append_chain(TextWriter& out, const RequestHead& head, const ForwardedBy& by) {
  auto before = "X-Forwarded-For: "sv;
  const auto append = [&](std::string_view address) {
    if (!address.empty()) out << std::exchange(before, ", "sv) << address;
  };
  if (by.peer_trusted && !by.uses_forwarded)
    for (const auto& field : head.fields)
      if (field.id == FieldId::XForwardedFor) append(field.value);
  append(by.peer);
  if (before == ", "sv) out << "\r\n";
}

void append_forwarding(TextWriter& out, const RequestHead& head, const ForwardedBy& by) {
  append_chain(out, head, by);
  const auto said = [&](FieldId id) {  // returns true if a trusted peer sent this field and weir forwards it
    const auto* field = by.peer_trusted ? find_field(head.fields, id) : nullptr;
    return field != nullptr && !field->hop_by_hop;
  };
  if (!said(FieldId::XForwardedProto)) out << "X-Forwarded-Proto: " << by.proto << "\r\n";
  if (!said(FieldId::XForwardedHost)) out << "X-Forwarded-Host: " << head.authority << "\r\n";
  if (!said(FieldId::XRequestId)) out << "X-Request-ID: " << by.request_id << "\r\n";
  if (by.add_forwarded) append_forwarded(out, head, by);
  out << "Via: ";
  append_list(out, head.fields, FieldId::Via);
  out << (head.http2 ? "2 weir\r\n"sv : head.minor_version == 1 ? "1.1 weir\r\n"sv : "1.0 weir\r\n"sv);
}

// Writes the request target. An absolute-form target becomes the origin-form of the same resource, with the
// same octets; its authority becomes Host (RFC 9112 §3.2.2). `path`: replaces the target's path; empty: keeps
// it.
void append_target(TextWriter& out, const RequestHead& head, std::string_view path) {
  auto target = head.target;
  if (!path.empty()) {
    out << path;
    target = head.query;
    if (!target.empty()) out << "?";
  } else if (head.path == "*") {
    target = head.path;
  } else if (target.front() != '/') {
    target.remove_prefix(static_cast<std::size_t>(head.authority.data() - target.data()) +
                         head.authority.size());
    if (!target.starts_with('/')) out << "/";
  }
  out << target;
}

void append_framing(TextWriter& out, Framing framing, std::uint64_t length, bool length_known) {
  if (framing == Framing::Chunked)
    out << "Transfer-Encoding: chunked\r\n";
  else if (length_known)
    out << "Content-Length: " << length << "\r\n";
}

void append_upgrade(TextWriter& out, std::string_view protocol) {
  out << "Connection: upgrade\r\nUpgrade: " << protocol << "\r\n";
}

// Writes the protocols of the server's Upgrade fields in one line. Returns false if the server names no
// protocol.
bool append_offered_protocols(TextWriter& out, const Fields& fields) {
  auto before = "Upgrade: "sv;
  for (const auto& field : fields)
    if (field.id == FieldId::Upgrade && !field.value.empty())
      out << std::exchange(before, ", "sv) << field.value;
  const bool any = before == ", "sv;
  if (any) out << "\r\n";
  return any;
}

// Writes the Connection field for the client. Writes no line if the field would be empty.
void append_connection(TextWriter& out, const ResponseForm& form, bool offers_upgrade) {
  const auto persistence = !form.keep_alive                 ? "close"sv
                           : form.client_minor_version == 0 ? "keep-alive"sv
                                                            : ""sv;
  if (persistence.empty() && !offers_upgrade) return;
  out << "Connection: " << persistence << (!persistence.empty() && offers_upgrade ? ", "sv : ""sv)
      << (offers_upgrade ? "upgrade"sv : ""sv) << "\r\n";
}

void append_status_line(TextWriter& out, const ResponseHead& head) {
  out << "HTTP/1.1 " << head.status << " " << head.reason << "\r\n";
}

}  // namespace

void append_number(std::string& out, std::uint64_t number) {
  TextWriter(out, TextWriter::kDigits) << number;
}

void write_request_head(std::string& text, const RequestHead& head, const ForwardedBy& by) {
  // Counts the size of all fields twice, because a field may be written both in a line of its own and in a
  // list.
  TextWriter out(text, kFixedPart + head.method.size() + head.target.size() + 3 * head.authority.size() +
                           by.host.size() + 2 * (by.peer.size() + by.proto.size()) + by.request_id.size() +
                           by.upgrade.size() + by.path.size() + by.added.size() + 2 * most_of(head.fields));
  out << head.method << " ";
  append_target(out, head, by.path);
  out << " HTTP/1.1\r\nHost: " << (by.host.empty() ? head.authority : by.host) << "\r\n";
  bool length_known = false;
  const auto* const withheld = by.peer_trusted ? nullptr : by.trusted_fields;
  copy_lines(out, head.fields, [&](const Field& field) {
    length_known |= field.id == FieldId::ContentLength;
    return !field.hop_by_hop && !rewritten(field.id, by.peer_trusted) &&
           (withheld == nullptr || !withheld->contains(field)) &&
           (!head.max_forwards || field.id != FieldId::MaxForwards) &&
           (by.underscores || !has_underscore(field)) && !(by.whole_and_plain && asks_for_form(field));
  });
  out << by.added;
  if (by.whole_and_plain) out << "Accept-Encoding: identity\r\n";
  if (!by.upgrade.empty()) append_upgrade(out, by.upgrade);
  if (head.max_forwards) out << "Max-Forwards: " << *head.max_forwards - 1 << "\r\n";
  append_forwarding(out, head, by);
  append_framing(out, head.framing, head.content_length, length_known);
  out << "\r\n";
}

void remove_expectation(RequestHead& head) noexcept {
  head.expects_continue = false;
  for (auto& field : head.fields)
    if (field.id == FieldId::Expect) field.hop_by_hop = true;
}

void write_response_head(std::string& text, const ResponseHead& head, const ResponseForm& form,
                         std::string_view extra, std::string_view date) {
  TextWriter out(text, kFixedPart + head.reason.size() + extra.size() + date.size() + most_of(head.fields));
  append_status_line(out, head);
  bool dated = false;
  copy_lines(out, head.fields, [&](const Field& field) {
    dated |= field.id == FieldId::Date && !field.hop_by_hop;
    return field.id != FieldId::ContentLength && !field.hop_by_hop;
  });
  if (!dated) out << "Date: " << date << "\r\n";
  out << extra;
  // In a response to HEAD and in a 304, Content-Length is the length of the body that a response to GET would
  // have. Responses 1xx and 204 have no Content-Length.
  const bool length_goes_on = head.length_known && head.status != 204 && form.framing != Framing::UntilClose;
  append_framing(out, form.framing, head.content_length, length_goes_on);
  // A 426 must name the protocols that the server requires (RFC 9110 §15.5.22). With any other status, weir
  // drops the server's Upgrade field, which only offers another protocol to weir. weir does not switch unless
  // the client asked for an upgrade.
  const bool offers_upgrade = head.status == 426 && append_offered_protocols(out, head.fields);
  append_connection(out, form, offers_upgrade);
  out << "\r\n";
}

void write_interim_head(std::string& text, const ResponseHead& head) {
  TextWriter out(text, kFixedPart + head.reason.size() + most_of(head.fields));
  append_status_line(out, head);
  copy_lines(out, head.fields,
             [](const Field& field) { return !field.hop_by_hop && field.id != FieldId::ContentLength; });
  out << "\r\n";
}

void write_switch_head(std::string& text, const ResponseHead& head, std::string_view protocol,
                       std::string_view extra) {
  TextWriter out(text,
                 kFixedPart + head.reason.size() + protocol.size() + extra.size() + most_of(head.fields));
  append_status_line(out, head);
  copy_lines(out, head.fields,
             [](const Field& field) { return !field.hop_by_hop && field.id != FieldId::ContentLength; });
  append_upgrade(out, protocol);
  out << extra << "\r\n";
}

ResponseForm response_form(const RequestHead& request, const ResponseHead& response,
                           bool keep_alive) noexcept {
  ResponseForm form{response.framing, keep_alive, request.minor_version};
  const bool unmeasured = response.framing == Framing::Chunked || response.framing == Framing::UntilClose;
  if (!unmeasured) return form;
  form.framing = request.minor_version == 0 ? Framing::UntilClose : Framing::Chunked;
  if (form.framing == Framing::UntilClose) form.keep_alive = false;
  return form;
}

}  // namespace weir::http
