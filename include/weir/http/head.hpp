// The heads of HTTP/1 messages as values: views into the buffer they were read from, valid while it stands
// still.
#pragma once

#include "weir/http/parameters.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

#include <boost/container/static_vector.hpp>

namespace weir::http {

// The fields that weir itself looks at; everything else is passed on unread.
enum class FieldId : std::uint8_t {
  Other,
  Accept,
  Authorization,
  Connection,
  ContentLength,
  ContentType,
  Cookie,
  Date,
  Expect,
  Forwarded,
  Host,
  KeepAlive,
  MaxForwards,
  ProxyConnection,
  RateLimit,
  RateLimitPolicy,
  Te,
  Trailer,
  TransferEncoding,
  Upgrade,
  Via,
  XForwardedFor,
  XForwardedHost,
  XForwardedProto,
  XRequestId,
};

struct Field {
  std::string_view name;
  std::string_view value;  // without white space around it
  FieldId id = FieldId::Other;
  bool hop_by_hop = false;  // ends here: listed in RFC 9110 §7.6.1 or named by Connection
};

inline constexpr std::size_t kMaxFields = 128;
using Fields = boost::container::static_vector<Field, kMaxFields>;

// How the end of a body is found (RFC 9112 §6.3).
enum class Framing : std::uint8_t {
  None,        // there is no body
  Length,      // content_length bytes
  Chunked,     // until the last chunk
  UntilClose,  // responses alone: until the connection closes
};

struct RequestHead {
  std::string_view method;
  std::string_view target;     // as it came
  std::string_view authority;  // of an absolute-form target, else the Host field; with its port
  std::string_view path;       // of the target, not decoded, without the query; "*": OPTIONS of all
  std::string_view query;      // after '?', without it
  Fields fields;
  unsigned minor_version = 1;  // of HTTP/1.x
  Framing framing = Framing::None;
  std::uint64_t content_length = 0;
  bool keep_alive = true;
  bool expects_continue = false;
  bool wants_upgrade = false;                 // HTTP/1.1, and Connection names `upgrade` (RFC 9110 §7.8)
  std::optional<std::uint64_t> max_forwards;  // of OPTIONS and TRACE alone (RFC 9110 §7.6.2)
  ParameterBounds bounds{};  // set by whoever reads parameters, before the first is asked for

  void clear() noexcept;  // to what a new one is, without touching the memory of fields that are not there

  // The values of a query parameter or a cookie. The first call takes the query or the cookies apart.
  [[nodiscard]] NamedValues query_values(std::string_view name) const;
  [[nodiscard]] NamedValues cookie_values(std::string_view name) const;
  // Notes the first bound that is exceeded. Whoever decides on the request refuses it then (400).
  void note_excess(const Excess& excess) const noexcept {
    if (!excess_) excess_ = excess;
  }
  [[nodiscard]] const Excess& excess() const noexcept { return excess_; }

  // Filled when first asked for; a head belongs to one thread.
  mutable Parameters parameters_{};
  mutable Parameters cookies_{};
  mutable Excess excess_{};
};

struct ResponseHead {
  unsigned status = 0;
  std::string_view reason;
  Fields fields;
  unsigned minor_version = 1;
  Framing framing = Framing::None;
  std::uint64_t content_length = 0;
  bool length_known = false;  // Content-Length is valid and no Transfer-Encoding overrides it
  bool keep_alive = true;
  bool wants_upgrade = false;  // likewise

  void clear() noexcept;
};

// The first field with this name (compared without case), or null.
[[nodiscard]] const Field* find_field(const Fields& fields, std::string_view name) noexcept;
[[nodiscard]] const Field* find_field(const Fields& fields, FieldId id) noexcept;

// Equal without regard to the case of ASCII letters.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace weir::http
