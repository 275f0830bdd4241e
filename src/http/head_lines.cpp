#include "http/head_lines.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace weir::http {

namespace {

// Classes of octets, one bit for each class.
constexpr unsigned char kToken = 1;  // tchar (RFC 9110 §5.6.2)
constexpr unsigned char kText = 2;   // field-vchar, SP and HTAB (RFC 9110 §5.5)
// the octets of a target: no white space or controls; includes obs-text, which browsers send
constexpr unsigned char kTarget = 4;
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

// Returns the first octet from `at` on that is in none of the classes `kWanted`; `end` if there is none.
// Checks for the end only once for four octets, because this function reads most octets of a head.
template <unsigned char kWanted>
const char* skip(const char* at, const char* end) noexcept {
  for (; end - at >= 4; at += 4) {
    if (!is(at[0], kWanted)) return at;
    if (!is(at[1], kWanted)) return at + 1;
    if (!is(at[2], kWanted)) return at + 2;
    if (!is(at[3], kWanted)) return at + 3;
  }
  while (at != end && is(*at, kWanted)) ++at;
  return at;
}

constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;

template <class Word>
Word load(const char* at) noexcept {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Returns how many of the eight octets precede the first one that is DEL or below `kLowest`; 8 if there is no
// such octet. Uses the haszero and hasless tests of https://graphics.stanford.edu/~seander/bithacks.html.
// Bits above the lowest set bit may be wrong, so only the lowest set bit is used.
template <unsigned char kLowest>
std::size_t plain_octets(const char* eight) noexcept {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kTops = 0x80 * kOnes;
  const auto word = load<std::uint64_t>(eight);
  const auto below = (word - kOnes * kLowest) & ~word;
  const auto with_delete = word ^ kOnes * 0x7F;
  const auto deleted = (with_delete - kOnes) & ~with_delete;
  return static_cast<std::size_t>(std::countr_zero((below | deleted) & kTops)) / 8;
}

// Returns true if `name` equals `known` without regard to case. Compares word by word; the last word overlaps
// the previous word. Setting bit 5 maps upper-case letters to lower case, and no other token character to a
// lower-case letter or a hyphen. REQUIRES: `known` is in lower case, has at least two octets and the size of
// `name`.
template <class Word>
bool is_name(std::string_view name, std::string_view known) noexcept {
  constexpr auto kLower = static_cast<Word>(0x20 * kOnes);
  const auto differs = [&](std::size_t at) {
    return (load<Word>(name.data() + at) | kLower) != load<Word>(known.data() + at);
  };
  const auto last = name.size() - sizeof(Word);
  for (std::size_t at = 0; at < last; at += sizeof(Word))
    if (differs(at)) return false;
  return !differs(last);
}

bool is_name(std::string_view name, std::string_view known) noexcept {
  if (known.size() >= 8) return is_name<std::uint64_t>(name, known);
  return known.size() >= 4 ? is_name<std::uint32_t>(name, known) : is_name<std::uint16_t>(name, known);
}

}  // namespace

std::string_view HeadLines::take_to(const char* end) noexcept {
  const char* const begin = std::exchange(at_, end);
  return {begin, static_cast<std::size_t>(end - begin)};
}

std::string_view HeadLines::take_text() noexcept {
  const char* at = at_;
  while (end_ - at >= 8) {
    const auto plain = plain_octets<' '>(at);
    at += plain;
    if (plain == 8) continue;
    if (*at != '\t') return take_to(at);
    ++at;
  }
  return take_to(skip<kText>(at, end_));
}

std::string_view HeadLines::take_target() noexcept {
  const char* at = at_;
  while (end_ - at >= 8) {
    const auto plain = plain_octets<'!'>(at);
    at += plain;
    if (plain < 8) return take_to(at);
  }
  return take_to(skip<kTarget>(at, end_));
}

bool HeadLines::take_one(char wanted) noexcept {
  if (at_ == end_ || *at_ != wanted) return false;
  ++at_;
  return true;
}

bool HeadLines::take_line_end() noexcept {
  if (end_ - at_ >= 2 && at_[0] == '\r' && at_[1] == '\n') {
    at_ += 2;
    return true;
  }
  return line_ends_ == LineEnds::BareToo && take_one('\n');
}

// Reads the version, which must be exactly "HTTP/1.0" or "HTTP/1.1" (RFC 9112 §2.3).
std::optional<unsigned> HeadLines::take_version() noexcept {
  constexpr std::string_view kName = "HTTP/1.";
  if (end_ - at_ < 8 || std::memcmp(at_, kName.data(), kName.size()) != 0) return std::nullopt;
  at_ += kName.size();
  if (*at_ != '0' && *at_ != '1') return std::nullopt;
  return static_cast<unsigned>(*at_++ - '0');
}

bool HeadLines::begins_with_token() const noexcept {
  return is(*at_, kToken);
}

std::optional<HeadLines::RequestLine> HeadLines::request_line() noexcept {
  RequestLine line;
  line.method = take_to(skip<kToken>(at_, end_));
  if (line.method.empty() || !take_one(' ')) return std::nullopt;
  line.target = take_target();
  if (line.target.empty() || !take_one(' ')) return std::nullopt;
  const auto version = take_version();
  if (!version || !take_line_end()) return std::nullopt;
  line.minor_version = *version;
  return line;
}

std::optional<HeadLines::StatusLine> HeadLines::status_line() noexcept {
  StatusLine line;
  const auto version = take_version();
  if (!version || !take_one(' ') || end_ - at_ < 3) return std::nullopt;
  line.minor_version = *version;
  for (int i = 0; i < 3; ++i, ++at_) {
    if (!is_digit(*at_)) return std::nullopt;
    line.status = line.status * 10 + static_cast<unsigned>(*at_ - '0');
  }
  // Some servers omit the space before an empty reason phrase, although the grammar requires the space.
  if (take_one(' ')) line.reason = take_text();
  if (!take_line_end()) return std::nullopt;
  return line;
}

HeadLines::Result HeadLines::field(Field& field) noexcept {
  field.name = take_to(skip<kToken>(at_, end_));
  if (field.name.empty()) return take_line_end() && at_ == end_ ? Result::End : Result::Malformed;
  if (!take_one(':')) return Result::Malformed;
  at_ = skip<kBlank>(at_, end_);
  field.value = take_text();
  if (!take_line_end()) return Result::Malformed;
  while (!field.value.empty() && is(field.value.back(), kBlank)) field.value.remove_suffix(1);
  return Result::Field;
}

FieldId field_id(std::string_view name) noexcept {
  const auto is = [&](std::string_view known) { return is_name(name, known); };
  switch (name.size()) {
    case 2:
      return is("te") ? FieldId::Te : FieldId::Other;
    case 3:
      return is("via") ? FieldId::Via : FieldId::Other;
    case 4:
      if (is("host")) return FieldId::Host;
      return is("date") ? FieldId::Date : FieldId::Other;
    case 6:
      if (is("accept")) return FieldId::Accept;
      if (is("cookie")) return FieldId::Cookie;
      return is("expect") ? FieldId::Expect : FieldId::Other;
    case 7:
      if (is("trailer")) return FieldId::Trailer;
      return is("upgrade") ? FieldId::Upgrade : FieldId::Other;
    case 9:
      if (is("forwarded")) return FieldId::Forwarded;
      return is("ratelimit") ? FieldId::RateLimit : FieldId::Other;
    case 10:
      if (is("connection")) return FieldId::Connection;
      return is("keep-alive") ? FieldId::KeepAlive : FieldId::Other;
    case 12:
      if (is("content-type")) return FieldId::ContentType;
      if (is("max-forwards")) return FieldId::MaxForwards;
      return is("x-request-id") ? FieldId::XRequestId : FieldId::Other;
    case 13:
      return is("authorization") ? FieldId::Authorization : FieldId::Other;
    case 14:
      return is("content-length") ? FieldId::ContentLength : FieldId::Other;
    case 15:
      return is("x-forwarded-for") ? FieldId::XForwardedFor : FieldId::Other;
    case 16:
      if (is("ratelimit-policy")) return FieldId::RateLimitPolicy;
      if (is("x-forwarded-host")) return FieldId::XForwardedHost;
      return is("proxy-connection") ? FieldId::ProxyConnection : FieldId::Other;
    case 17:
      if (is("transfer-encoding")) return FieldId::TransferEncoding;
      return is("x-forwarded-proto") ? FieldId::XForwardedProto : FieldId::Other;
    default:
      return FieldId::Other;
  }
}

}  // namespace weir::http
