#include "weir/http/head_parser.hpp"

#include "http/head_lines.hpp"
#include "http/token_list.hpp"

#include "weir/http/target.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace weir::http {

namespace {

constexpr Fault kMalformed{400, "the request head is malformed"};
constexpr Fault kNoAnswer{502, "the response of the upstream is malformed"};

// Returns true for fields that RFC 9110 §7.6.1 makes hop-by-hop, whether or not Connection names them.
bool is_always_hop_by_hop(FieldId id) noexcept {
  switch (id) {
    case FieldId::Connection:
    case FieldId::KeepAlive:
    case FieldId::ProxyConnection:
    case FieldId::Te:
    case FieldId::Trailer:
    case FieldId::TransferEncoding:
    case FieldId::Upgrade:
      return true;
    default:
      return false;
  }
}

// Reads the fields up to the empty line. Returns `malformed` or `too_many` if they are invalid.
std::optional<Fault> read_fields(HeadLines& lines, Fields& fields, Fault malformed, Fault too_many) {
  Field field;
  for (;;) {
    const auto result = lines.field(field);
    if (result == HeadLines::Result::End) return std::nullopt;
    if (result == HeadLines::Result::Malformed) return malformed;
    if (fields.size() == fields.capacity()) return too_many;
    field.id = field_id(field.name);
    field.hop_by_hop = is_always_hop_by_hop(field.id);
    fields.push_back(field);
  }
}

// The maximum number of options in all Connection fields together. Bounds the work, because each option is
// compared with the name of every field.
constexpr std::size_t kMaxOptions = 32;

struct ConnectionOptions {
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
};

// Parses the Connection fields, and marks each field that a Connection field names as hop-by-hop. Returns
// nullopt if there are too many options. Host and the framing fields are exceptions: weir reads them even if
// Connection names them, and always writes them itself.
std::optional<ConnectionOptions> read_connection(Fields& fields) {
  ConnectionOptions options;
  std::size_t count = 0;
  for (const auto& field : fields) {
    if (field.id != FieldId::Connection) continue;
    for_each_token(field.value, [&](std::string_view token) {
      if (++count > kMaxOptions) return;
      if (equal_ignoring_case(token, "close")) {
        options.close = true;
      } else if (equal_ignoring_case(token, "keep-alive")) {
        options.keep_alive = true;
      } else {
        options.upgrade = options.upgrade || equal_ignoring_case(token, "upgrade");
        for (auto& named : fields)
          if (equal_ignoring_case(named.name, token)) named.hop_by_hop = true;
      }
    });
    if (count > kMaxOptions) return std::nullopt;
  }
  return options;
}

constexpr std::uint64_t kMostLength = std::numeric_limits<std::int64_t>::max();

struct FramingFields {
  std::optional<std::uint64_t> length;
  bool chunked = false;
  bool faulty_length = false;
  bool faulty_coding = false;
};

// Parses Content-Length and Transfer-Encoding strictly (RFC 9112 §6.1, §6.3). The coding must be exactly
// `chunked`. A length must consist of digits, and all lengths must be equal. A length above 2^63 - 1 is
// rejected, because servers with signed numbers would read it as negative.
FramingFields read_framing(const Fields& fields) {
  FramingFields found;
  for (const auto& field : fields) {
    if (field.id == FieldId::TransferEncoding) {
      if (found.chunked || !equal_ignoring_case(field.value, "chunked")) found.faulty_coding = true;
      found.chunked = true;
    }
    if (field.id == FieldId::ContentLength) {
      std::uint64_t length = 0;
      const auto* end = field.value.data() + field.value.size();
      const auto [stop, error] = std::from_chars(field.value.data(), end, length);
      if (error != std::errc{} || stop != end || length > kMostLength ||
          (found.length && *found.length != length))
        found.faulty_length = true;
      found.length = length;
    }
  }
  return found;
}

// Returns true if the method has a lower-case letter. weir rejects such methods. Methods are case-sensitive
// (RFC 9110 §9.1), so a rule for POST does not match "post", but some servers read "post" as POST.
bool has_small_letters(std::string_view method) noexcept {
  return std::any_of(method.begin(), method.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Parses the target by its form (RFC 9112 §3.2).
std::optional<Fault> read_target(RequestHead& head) {
  std::string_view rest = head.target;
  if (has_small_letters(head.method)) return Fault{400, "the method must be in capital letters"};
  if (head.method == "CONNECT") return Fault{405, "CONNECT is not supported"};
  if (rest == "*") {
    if (head.method != "OPTIONS") return Fault{400, "the target * is only allowed with OPTIONS"};
    head.path = rest;
    return std::nullopt;
  }
  if (rest.find('#') != std::string_view::npos)
    return Fault{400, "the request target must not have a fragment"};
  if (rest.front() != '/') {
    const auto scheme = rest.find("://");
    if (scheme == std::string_view::npos || !(equal_ignoring_case(rest.substr(0, scheme), "http") ||
                                              equal_ignoring_case(rest.substr(0, scheme), "https")))
      return Fault{400, "the request target is neither a path nor an http URL"};
    rest.remove_prefix(scheme + 3);
    const auto end = std::min(rest.find_first_of("/?"), rest.size());
    head.authority = rest.substr(0, end);
    rest.remove_prefix(end);
    if (head.authority.empty() || !valid_authority(head.authority))
      return Fault{400, "the request target's host is invalid"};
  }
  if (rest.empty() && head.method == "OPTIONS") {  // asks about the server as a whole (RFC 9112 §3.2.4)
    head.path = "*";
    return std::nullopt;
  }
  const auto question = rest.find('?');
  head.path = question == 0 || rest.empty() ? std::string_view("/") : rest.substr(0, question);
  if (question != std::string_view::npos) head.query = rest.substr(question + 1);
  head.plain_path = is_plain_path(head.path);
  if (head.plain_path) return std::nullopt;
  if (const char* why = path_fault(head.path)) return Fault{400, why};
  return std::nullopt;
}

std::optional<Fault> read_host(RequestHead& head) {
  const Field* host = nullptr;
  for (const auto& field : head.fields) {
    if (field.id != FieldId::Host) continue;
    if (host != nullptr) return Fault{400, "the request has more than one Host header"};
    host = &field;
  }
  if (host == nullptr)
    return head.minor_version == 0 ? std::nullopt : std::optional(Fault{400, "the Host header is missing"});
  const auto plain = plain_host(host->value);
  if (plain.empty() && !valid_authority(host->value)) return Fault{400, "the Host header is invalid"};
  if (!head.authority.empty()) return std::nullopt;
  head.authority = host->value;
  head.host = plain;
  return std::nullopt;
}

std::optional<Fault> read_request_framing(RequestHead& head) {
  const auto framing = read_framing(head.fields);
  if (framing.chunked && framing.length)
    return Fault{400, "the request has both Content-Length and Transfer-Encoding"};
  if (framing.faulty_coding) return Fault{501, "the only supported transfer coding is chunked"};
  if (framing.faulty_length) return Fault{400, "the Content-Length is invalid"};
  if (framing.chunked && head.minor_version == 0) return Fault{400, "HTTP/1.0 has no Transfer-Encoding"};
  if (framing.chunked) head.framing = Framing::Chunked;
  if (framing.length && *framing.length > 0) head.framing = Framing::Length;
  head.content_length = framing.length.value_or(0);
  return std::nullopt;
}

// Returns true if the response ends with its head, whatever its fields say (RFC 9112 §6.3, rules 1 and 2).
bool has_no_body(unsigned status, bool to_head) noexcept {
  return to_head || status < 200 || status == 204 || status == 304;
}

// Sets framing, content_length, length_known and keep_alive. Ambiguous framing is a fault only if a body
// follows the head. If no body follows, weir drops the framing fields.
std::optional<Fault> read_response_framing(ResponseHead& head, bool to_head) {
  const auto framing = read_framing(head.fields);
  const bool ambiguous =
      framing.faulty_coding || framing.faulty_length || (framing.chunked && framing.length);
  const bool bodiless = has_no_body(head.status, to_head);
  if (ambiguous && !bodiless) return Fault{502, "the framing of the upstream's response is ambiguous"};
  head.length_known = framing.length && !ambiguous;
  head.content_length = head.length_known ? *framing.length : 0;
  // Closes the connection if a server may send a body that weir does not expect, because weir could read that
  // body as the next response. This is so if the framing is ambiguous, if an HTTP/1.0 response is chunked
  // (RFC 9112 §6.1), or if a 204 announces a body.
  const bool speaks_of_body = framing.chunked || head.content_length > 0;
  if (ambiguous || (framing.chunked && head.minor_version == 0) || (head.status == 204 && speaks_of_body))
    head.keep_alive = false;
  if (bodiless)
    head.framing = Framing::None;
  else if (framing.chunked)
    head.framing = Framing::Chunked;
  else if (framing.length)
    head.framing = *framing.length > 0 ? Framing::Length : Framing::None;
  else
    head.framing = Framing::UntilClose;
  head.trailers_may_follow = head.framing == Framing::Chunked;
  return std::nullopt;
}

// Parses Expect (RFC 9110 §10.1.1). The only valid expectation is 100-continue, which may be repeated. weir
// drops the field from HTTP/1.0 requests and from requests without a body. Clients of such requests do not
// wait for a 100.
std::optional<Fault> read_expectations(RequestHead& head) {
  const bool meant = head.minor_version == 1 && head.framing != Framing::None;
  for (auto& field : head.fields) {
    if (field.id != FieldId::Expect) continue;
    bool known = true, said = false;
    for_each_token(field.value, [&](std::string_view token) {
      known = known && equal_ignoring_case(token, "100-continue");
      said = true;
    });
    if (!known || !said) return Fault{417, "the only supported expectation is 100-continue"};
    field.hop_by_hop = field.hop_by_hop || !meant;
    // If Connection names Expect, weir drops the field (RFC 9110 §7.6.1), and no server will send a 100.
    head.expects_continue = head.expects_continue || !field.hop_by_hop;
  }
  return std::nullopt;
}

// Parses Max-Forwards (RFC 9110 §7.6.2), which applies to OPTIONS and TRACE only.
std::optional<Fault> read_max_forwards(RequestHead& head) {
  if (head.method != "OPTIONS" && head.method != "TRACE") return std::nullopt;
  for (const auto& field : head.fields) {
    if (field.id != FieldId::MaxForwards) continue;
    const auto* end = field.value.data() + field.value.size();
    std::uint64_t hops = 0;
    const auto [stop, error] = std::from_chars(field.value.data(), end, hops);
    if (error != std::errc{} || stop != end || head.max_forwards)
      return Fault{400, "Max-Forwards is not a whole number"};
    head.max_forwards = hops;
  }
  return std::nullopt;
}

// Returns true if any line that ends after `from` ends in LF without CR.
bool has_bare_line_feed(std::string_view bytes, std::size_t from) noexcept {
  for (auto end = bytes.find('\n', from); end != std::string_view::npos; end = bytes.find('\n', end + 1))
    if (end == 0 || bytes[end - 1] != '\r') return true;
  return false;
}

}  // namespace

std::size_t find_head_end(std::string_view bytes, std::size_t from) noexcept {
  const auto at = bytes.find("\r\n\r\n", from > 3 ? from - 3 : 0);
  return at == std::string_view::npos ? 0 : at + 4;
}

std::size_t find_answer_head_end(std::string_view bytes, std::size_t from) noexcept {
  auto end = bytes.find('\n', from > 2 ? from - 2 : 0);
  for (; end != std::string_view::npos; end = bytes.find('\n', end + 1)) {
    const auto next = bytes.substr(end + 1, 2);
    if (next.starts_with('\n')) return end + 2;
    if (next == "\r\n") return end + 3;
  }
  return 0;
}

std::optional<Fault> find_early_fault(std::string_view begun, std::size_t from) noexcept {
  if (begun.empty() || begun == "\r") return std::nullopt;  // an empty line may have begun
  HeadLines lines(begun);
  if (!lines.begins_with_token() || has_bare_line_feed(begun, from)) return kMalformed;
  const auto first = begun.find('\n');
  const bool is_new = first != std::string_view::npos && first >= from;
  if (is_new && !lines.request_line()) return kMalformed;
  return std::nullopt;
}

std::optional<Fault> find_early_answer_fault(std::string_view begun, std::size_t from) noexcept {
  constexpr std::string_view kBeginning = "HTTP/1.";
  const auto known = std::min(begun.size(), kBeginning.size());
  if (begun.substr(0, known) != kBeginning.substr(0, known)) return kNoAnswer;
  const auto first = begun.find('\n');
  const bool is_new = first != std::string_view::npos && first >= from;
  if (is_new && !HeadLines(begun, HeadLines::LineEnds::BareToo).status_line()) return kNoAnswer;
  return std::nullopt;
}

std::optional<Fault> parse_request_head(std::string_view bytes, RequestHead& head) {
  head.clear();
  HeadLines lines(bytes);
  const auto line = lines.request_line();
  if (!line) return kMalformed;
  head.method = line->method;
  head.target = line->target;
  head.minor_version = line->minor_version;
  if (auto fault = read_fields(lines, head.fields, kMalformed, {431, "too many header fields"})) return fault;
  if (auto fault = read_target(head)) return fault;
  if (auto fault = read_host(head)) return fault;
  if (auto fault = read_request_framing(head)) return fault;
  if (auto fault = read_max_forwards(head)) return fault;
  const auto connection = read_connection(head.fields);
  if (!connection) return Fault{400, "the Connection header has too many options"};
  head.keep_alive = !connection->close && (head.minor_version == 1 || connection->keep_alive);
  head.wants_upgrade = connection->upgrade && head.minor_version == 1;
  return read_expectations(head);
}

std::optional<Fault> parse_response_head(std::string_view bytes, bool to_head, ResponseHead& head) {
  constexpr Fault kTooMany{431, "the response of the upstream has too many headers or connection options"};
  head.clear();
  HeadLines lines(bytes, HeadLines::LineEnds::BareToo);
  const auto line = lines.status_line();
  if (!line || line->status < 100) return kNoAnswer;
  head.status = line->status;
  head.reason = line->reason;
  head.minor_version = line->minor_version;
  if (auto fault = read_fields(lines, head.fields, kNoAnswer, kTooMany)) return fault;
  const auto connection = read_connection(head.fields);
  if (!connection) return kTooMany;
  head.keep_alive = !connection->close && (head.minor_version == 1 || connection->keep_alive);
  head.wants_upgrade = connection->upgrade && head.minor_version == 1;
  return read_response_framing(head, to_head);
}

}  // namespace weir::http
