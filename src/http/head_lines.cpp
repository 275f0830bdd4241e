#include "http/head_lines.hpp"

#include <array>

namespace weir::http {

namespace {

// Classes of octets, a bit each.
constexpr unsigned char kToken = 1;  // tchar (RFC 9110 §5.6.2)
constexpr unsigned char kText = 2;   // field-vchar, SP and HTAB (RFC 9110 §5.5)
constexpr unsigned char kTarget =
    4;  // neither white space nor control; obs-text is let pass, as browsers send it
constexpr unsigned char kBlank = 8;  // SP and HTAB

constexpr std::array<unsigned char, 256> kClasses = [] {
  std::array<unsigned char, 256> classes{};
  for (unsigned c = 0x21; c < 256; ++c)
    if (c != 0x7F) classes[c] = kText | kTarget;
  for (const char c : {' ', '\t'}) classes[static_cast<unsigned char>(c)] = kText | kBlank;
  for (const char c :
       std::string_view("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
    classes[static_cast<unsigned char>(c)] |= kToken;
  return classes;
}();

bool is(char c, unsigned char wanted) noexcept {
  return (kClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string_view HeadLines::take(unsigned char wanted) noexcept {
  const char* const begin = at_;
  while (at_ != end_ && is(*at_, wanted)) ++at_;
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

bool HeadLines::take_literal(std::string_view literal) noexcept {
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(literal)) return false;
  at_ += literal.size();
  return true;
}

// HTTP/1.0 and HTTP/1.1, in these letters (RFC 9112 §2.3).
std::optional<unsigned> HeadLines::take_version() noexcept {
  if (!take_literal("HTTP/1.") || at_ == end_ || (*at_ != '0' && *at_ != '1')) return std::nullopt;
  return static_cast<unsigned>(*at_++ - '0');
}

std::optional<HeadLines::RequestLine> HeadLines::request_line() noexcept {
  RequestLine line;
  line.method = take(kToken);
  if (line.method.empty() || !take_literal(" ")) return std::nullopt;
  line.target = take(kTarget);
  if (line.target.empty() || !take_literal(" ")) return std::nullopt;
  const auto version = take_version();
  if (!version || !take_literal("\r\n")) return std::nullopt;
  line.minor_version = *version;
  return line;
}

std::optional<HeadLines::StatusLine> HeadLines::status_line() noexcept {
  StatusLine line;
  const auto version = take_version();
  if (!version || !take_literal(" ") || end_ - at_ < 3) return std::nullopt;
  line.minor_version = *version;
  for (int i = 0; i < 3; ++i, ++at_) {
    if (!is_digit(*at_)) return std::nullopt;
    line.status = line.status * 10 + static_cast<unsigned>(*at_ - '0');
  }
  // Servers leave out an empty reason's space, though the grammar asks for it.
  if (take_literal(" ")) line.reason = take(kText);
  if (!take_literal("\r\n")) return std::nullopt;
  return line;
}

HeadLines::Result HeadLines::field(Field& field) noexcept {
  if (take_literal("\r\n")) return at_ == end_ ? Result::End : Result::Malformed;
  field.name = take(kToken);
  if (field.name.empty() || !take_literal(":")) return Result::Malformed;
  (void)take(kBlank);
  field.value = take(kText);
  if (!take_literal("\r\n")) return Result::Malformed;
  while (!field.value.empty() && is(field.value.back(), kBlank)) field.value.remove_suffix(1);
  return Result::Field;
}

FieldId field_id(std::string_view name) noexcept {
  const auto is_name = [&](std::string_view known) { return equal_ignoring_case(name, known); };
  switch (name.size()) {
    case 2:
      return is_name("TE") ? FieldId::Te : FieldId::Other;
    case 3:
      return is_name("Via") ? FieldId::Via : FieldId::Other;
    case 4:
      return is_name("Host") ? FieldId::Host : FieldId::Other;
    case 6:
      if (is_name("Accept")) return FieldId::Accept;
      if (is_name("Cookie")) return FieldId::Cookie;
      return is_name("Expect") ? FieldId::Expect : FieldId::Other;
    case 7:
      if (is_name("Trailer")) return FieldId::Trailer;
      return is_name("Upgrade") ? FieldId::Upgrade : FieldId::Other;
    case 9:
      if (is_name("Forwarded")) return FieldId::Forwarded;
      return is_name("RateLimit") ? FieldId::RateLimit : FieldId::Other;
    case 10:
      if (is_name("Connection")) return FieldId::Connection;
      return is_name("Keep-Alive") ? FieldId::KeepAlive : FieldId::Other;
    case 12:
      if (is_name("Content-Type")) return FieldId::ContentType;
      return is_name("X-Request-ID") ? FieldId::XRequestId : FieldId::Other;
    case 13:
      return is_name("Authorization") ? FieldId::Authorization : FieldId::Other;
    case 14:
      return is_name("Content-Length") ? FieldId::ContentLength : FieldId::Other;
    case 15:
      return is_name("X-Forwarded-For") ? FieldId::XForwardedFor : FieldId::Other;
    case 16:
      if (is_name("RateLimit-Policy")) return FieldId::RateLimitPolicy;
      if (is_name("X-Forwarded-Host")) return FieldId::XForwardedHost;
      return is_name("Proxy-Connection") ? FieldId::ProxyConnection : FieldId::Other;
    case 17:
      if (is_name("Transfer-Encoding")) return FieldId::TransferEncoding;
      return is_name("X-Forwarded-Proto") ? FieldId::XForwardedProto : FieldId::Other;
    default:
      return FieldId::Other;
  }
}

}  // namespace weir::http
