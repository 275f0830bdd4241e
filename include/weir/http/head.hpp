// Parsed heads of HTTP messages. A head consists of views into the buffer of the message, valid as long as
// that buffer does not change.
#pragma once

#include "weir/http/parameters.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

#include <boost/container/static_vector.hpp>

namespace weir::http {

// The fields that weir itself reads. weir forwards all other fields without reading them.
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
  std::string_view value;  // without surrounding white space
  FieldId id = FieldId::Other;
  // True: weir does not forward this field, because RFC 9110 §7.6.1 lists it or Connection names it.
  bool hop_by_hop = false;
};

inline constexpr std::size_t kMaxFields = 128;
using Fields = boost::container::static_vector<Field, kMaxFields>;

// How the end of a body is found (RFC 9112 §6.3).
enum class Framing : std::uint8_t {
  None,        // no body
  Length,      // the body has content_length bytes
  Chunked,     // the body ends with its last chunk
  UntilClose,  // the body ends when the connection closes; responses only
};

struct RequestHead {
  std::string_view method;
  std::string_view target;     // as received
  std::string_view authority;  // host and port of an absolute-form target, otherwise the value of Host
  std::string_view path;       // path of the target, not decoded; "*" if OPTIONS asks about the whole server
  std::string_view query;      // query of the target, without the '?'
  std::string_view host{};  // result of plain_host() for `authority`; may be empty although there is a host
  bool plain_path = false;  // true: is_plain_path() is known to be true for `path`
  Fields fields;
  unsigned minor_version = 1;  // the x of HTTP/1.x
  Framing framing = Framing::None;
  std::uint64_t content_length = 0;
  // true: the request came over HTTP/2; the other members describe an equal request of HTTP/1.1
  bool http2 = false;
  // True: an HTTP/2 client opens a WebSocket (RFC 8441). The other members describe the WebSocket handshake
  // of an HTTP/1.1 client.
  bool opens_websocket = false;
  bool keep_alive = true;
  bool expects_continue = false;
  // true: the version is HTTP/1.1 and Connection has `upgrade` (RFC 9110 §7.8)
  bool wants_upgrade = false;
  std::optional<std::uint64_t> max_forwards;  // for OPTIONS and TRACE only (RFC 9110 §7.6.2)
  ParameterBounds bounds{};  // must be set before the first call of query_values or cookie_values

  // Resets all members. Keeps the memory of `fields` for reuse.
  void clear() noexcept;

  // query_values() returns all values of a query parameter, cookie_values() all values of a cookie. The first
  // call parses the query or the cookies.
  [[nodiscard]] NamedValues query_values(std::string_view name) const;
  [[nodiscard]] NamedValues cookie_values(std::string_view name) const;
  // Records the first bound that the request exceeds; later calls have no effect. The admission controller
  // then rejects the request with a 400.
  void note_excess(const Excess& excess) const noexcept {
    if (!excess_) excess_ = excess;
  }
  [[nodiscard]] const Excess& excess() const noexcept { return excess_; }

  // query_values(), cookie_values() and note_excess() change these members even in a const head, so only one
  // thread may use a head.
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
  bool length_known = false;  // true: Content-Length is valid and no Transfer-Encoding overrides it
  // true: the body is chunked or comes over HTTP/2, so trailers may follow it
  bool trailers_may_follow = false;
  bool keep_alive = true;
  bool wants_upgrade = false;  // true: the version is HTTP/1.1 and Connection has `upgrade` (RFC 9110 §7.8)

  void clear() noexcept;
};

// Returns the first field with this name (ignoring case), or null.
[[nodiscard]] const Field* find_field(const Fields& fields, std::string_view name) noexcept;
[[nodiscard]] const Field* find_field(const Fields& fields, FieldId id) noexcept;

// Returns true if the texts are equal except for the case of ASCII letters.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace weir::http
