#include "weir/http/forwarding.hpp"

#include <array>
#include <charconv>

namespace weir::http {

namespace {

void line(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
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
  std::array<char, 20> digits{};
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

void write_request_head(std::string& out, const RequestHead& head, const ForwardedBy& by) {
  out += head.method;
  out += ' ';
  append_target(out, head);
  out += " HTTP/1.1\r\n";
  line(out, "Host", head.authority);
  bool length_known = false;
  for (const auto& field : head.fields) {
    length_known |= field.id == FieldId::ContentLength;
    if (!field.hop_by_hop && !rewritten(field.id, by.peer_trusted)) line(out, field.name, field.value);
  }
  append_forwarding(out, head, by);
  append_framing(out, head.framing, head.content_length, length_known);
  out += "\r\n";
}

void write_response_head(std::string& out, const ResponseHead& head, const ResponseForm& form,
                         std::string_view extra) {
  append_status_line(out, head);
  bool length_known = false;
  for (const auto& field : head.fields) {
    if (field.id == FieldId::ContentLength)
      length_known = true;
    else if (!field.hop_by_hop)
      line(out, field.name, field.value);
  }
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
  for (const auto& field : head.fields)
    if (!field.hop_by_hop && field.id != FieldId::ContentLength) line(out, field.name, field.value);
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
