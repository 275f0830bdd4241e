// Splits an HTTP/1 head into lines, character by character (RFC 9112 §3, §4, §5; RFC 9110 §5.5).
//
// Why not Beast's parser: docs/design/why-not-beast.md. For the same result, Beast needs 1.4 to 1.7 times the
// instructions. This parser repairs nothing: a bare CR, a folded line, white space before a colon and a
// control character are malformed. A bare LF is malformed unless LineEnds allows it. Tests compare the
// results with those of Beast.
#pragma once

#include "weir/http/head.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace weir::http {

class HeadLines {
 public:
  // The accepted line ends: only CRLF, or a bare LF as well.
  enum class LineEnds : unsigned char { CrlfOnly, BareToo };

  // The octets of `head` must outlive this object and the views that it returns.
  explicit HeadLines(std::string_view head, LineEnds line_ends = LineEnds::CrlfOnly) noexcept
      : at_(head.data()), end_(head.data() + head.size()), line_ends_(line_ends) {}

  struct RequestLine {
    std::string_view method;
    std::string_view target;
    unsigned minor_version = 1;
  };
  struct StatusLine {
    unsigned status = 0;  // 0 to 999
    std::string_view reason;
    unsigned minor_version = 1;
  };
  // Returns true if the head begins with a token character, as each method does. REQUIRES: the head has at
  // least one octet.
  [[nodiscard]] bool begins_with_token() const noexcept;
  // Return the first line, or nullopt if it is malformed.
  [[nodiscard]] std::optional<RequestLine> request_line() noexcept;
  [[nodiscard]] std::optional<StatusLine> status_line() noexcept;

  enum class Result : unsigned char { Field, End, Malformed };
  // Reads the next field, but does not set its FieldId. Returns End at the empty line if that line ends the
  // head.
  [[nodiscard]] Result field(Field& field) noexcept;

 private:
  [[nodiscard]] std::string_view take_to(const char* end) noexcept;
  [[nodiscard]] std::string_view take_text() noexcept;    // reads SP, HTAB, VCHAR and obs-text
  [[nodiscard]] std::string_view take_target() noexcept;  // reads VCHAR and obs-text
  [[nodiscard]] bool take_one(char wanted) noexcept;
  [[nodiscard]] bool take_line_end() noexcept;
  [[nodiscard]] std::optional<unsigned> take_version() noexcept;

  const char* at_;
  const char* end_;
  LineEnds line_ends_;
};

// The names of the fields that weir knows, in lower case and in the order of FieldId. FieldId::Other has an
// empty name.
inline constexpr std::array<std::string_view, 25> kKnownFieldNames{"",
                                                                   "accept",
                                                                   "authorization",
                                                                   "connection",
                                                                   "content-length",
                                                                   "content-type",
                                                                   "cookie",
                                                                   "date",
                                                                   "expect",
                                                                   "forwarded",
                                                                   "host",
                                                                   "keep-alive",
                                                                   "max-forwards",
                                                                   "proxy-connection",
                                                                   "ratelimit",
                                                                   "ratelimit-policy",
                                                                   "te",
                                                                   "trailer",
                                                                   "transfer-encoding",
                                                                   "upgrade",
                                                                   "via",
                                                                   "x-forwarded-for",
                                                                   "x-forwarded-host",
                                                                   "x-forwarded-proto",
                                                                   "x-request-id"};
static_assert(kKnownFieldNames.size() == static_cast<std::size_t>(FieldId::XRequestId) + 1);

// Returns the FieldId of a field name. REQUIRES: the name is a token.
[[nodiscard]] FieldId field_id(std::string_view name) noexcept;

}  // namespace weir::http
