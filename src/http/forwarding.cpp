#include "weir/http/forwarding.hpp"

#include <array>

namespace weir::http {

namespace {

void line(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

const char* end_of(std::string_view text) noexcept {
  return text.data() + text.size();
}

// From `begin` to the end of `last`'s line, which is written in the one way there is.
void append_piece(std::string& out, const char* begin, const Field& last) {
  out.append(begin, static_cast<std::size_t>(last.name.data() - begin));
  line(out, last.name, last.value);
}

// The line of `field` stands in the head just as it is written, and the line of `next` follows.
bool adjoins(const Field& field, const Field& next) noexcept {
  return field.value.data() == end_of(field.name) + 2 && end_of(field.name)[1] == ' ' &&
         next.name.data() == end_of(field.value) + 2;
}

// The lines of the fields that go on; neighbours are copied in one piece.
template <class GoesOn>
void copy_lines(std::string& out, const Fields& fields, GoesOn goes_on) {
  const char* run = nullptr;  // where the piece under way begins
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

// All values of a field as one list (RFC 9110 §5.3), each followed by ", ".
void append_list(std::string& out, const Fields& fields, FieldId id) {
  for (const auto& field : fields) {
    if (field.id != id || field.value.empty()) continue;
    out += field.value;
    out += ", ";
  }
}

// Fields that weir writes itself, from what it knows or from what a trusted peer said.
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

void append_forwarded(std::string& out, const RequestHead& head, const ForwardedBy& by) {
  const bool v6 = by.peer.find(':') != std::string_view::npos;
  out += "Forwarded: for=";
  out += v6 ? "\"[" : "";
  out += by.peer;
  out += v6 ? "]\"" : "";
  out += ";proto=";
  out += by.proto;
  out += ";host=\"";
  out += head.authority;
  out += "\"\r\n";
}

void append_forwarding(std::string& out, const RequestHead& head, const ForwardedBy& by) {
  out += "X-Forwarded-For: ";
  if (by.peer_trusted) append_list(out, head.fields, FieldId::XForwardedFor);
  out += by.peer;
  out += "\r\n";
  const auto said = [&](FieldId id) {  // and goes on: Connection may have named it
    const auto* field = by.peer_trusted ? find_field(head.fields, id) : nullptr;
    return field != nullptr && !field->hop_by_hop;
  };
  if (!said(FieldId::XForwardedProto)) line(out, "X-Forwarded-Proto", by.proto);
  if (!said(FieldId::XForwardedHost)) line(out, "X-Forwarded-Host", head.authority);
  if (!said(FieldId::XRequestId)) line(out, "X-Request-ID", by.request_id);
  if (by.add_forwarded) append_forwarded(out, head, by);
  out += "Via: ";
  append_list(out, head.fields, FieldId::Via);
  out += head.minor_version == 1 ? "1.1 weir\r\n" : "1.0 weir\r\n";
}

// Of an absolute-form target the origin-form of the same resource, octet for octet; its authority becomes
// Host (RFC 9112 §3.2.2).
void append_target(std::string& out, const RequestHead& head) {
  auto target = head.target;
  if (target.front() != '/' && head.path != "*") {
    target.remove_prefix(static_cast<std::size_t>(head.authority.data() - target.data()) +
                         head.authority.size());
    const bool whole_server = target.empty() && head.method == "OPTIONS";  // RFC 9112 §3.2.4
    if (!target.starts_with('/')) out += whole_server ? '*' : '/';
  }
  out += target;
}

void append_framing(std::string& out, Framing framing, std::uint64_t length, bool length_known) {
  if (framing == Framing::Chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  } else if (length_known) {
    out += "Content-Length: ";
    append_number(out, length);
    out += "\r\n";
  }
}

void append_status_line(std::string& out, const ResponseHead& head) {
  out += "HTTP/1.1 ";
  append_number(out, head.status);
  out += ' ';
  out += head.reason;
  out += "\r\n";
}

}  // namespace

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;
  auto* at = digits.data() + digits.size();
  do *--at = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  out.append(at, static_cast<std::size_t>(digits.data() + digits.size() - at));
}

void write_request_head(std::string& out, const RequestHead& head, const ForwardedBy& by) {
  out += head.method;
  out += ' ';
  append_target(out, head);
  out += " HTTP/1.1\r\n";
  line(out, "Host", head.authority);
  bool length_known = false;
  copy_lines(out, head.fields, [&](const Field& field) {
    length_known |= field.id == FieldId::ContentLength;
    return !field.hop_by_hop && !rewritten(field.id, by.peer_trusted);
  });
  append_forwarding(out, head, by);
  append_framing(out, head.framing, head.content_length, length_known);
  out += "\r\n";
}

void write_response_head(std::string& out, const ResponseHead& head, const ResponseForm& form,
                         std::string_view extra) {
  append_status_line(out, head);
  bool length_known = false;
  copy_lines(out, head.fields, [&](const Field& field) {
    length_known |= field.id == FieldId::ContentLength;
    return field.id != FieldId::ContentLength && !field.hop_by_hop;
  });
  out += extra;
  // To a HEAD, and in a 304, Content-Length speaks of the body that a GET would have had; 1xx and 204 have
  // none.
  if (head.status == 204) length_known = false;
  append_framing(out, form.framing, head.content_length, length_known && form.framing != Framing::UntilClose);
  if (!form.keep_alive)
    out += "Connection: close\r\n";
  else if (form.client_minor_version == 0)
    out += "Connection: keep-alive\r\n";
  out += "\r\n";
}

void write_interim_head(std::string& out, const ResponseHead& head) {
  append_status_line(out, head);
  copy_lines(out, head.fields,
             [](const Field& field) { return !field.hop_by_hop && field.id != FieldId::ContentLength; });
  out += "\r\n";
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
