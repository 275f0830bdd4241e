// The header fields of one HTTP/2 message (RFC 9113 §8.2), and their conversion from and to HTTP/1.1.
#pragma once

#include "weir/http/head.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

// Collects fields for a message that weir sends. Names become lower-case (RFC 9113 §8.2.1).
class Http2Fields {
 public:
  struct Field {
    std::string_view name, value;
  };

  void clear() noexcept;
  void add(std::string_view name, std::string_view value);
  // Adds the lines of an HTTP/1.1 field section, each with CRLF, up to the first empty line. Leaves out the
  // fields that describe the connection (RFC 9113 §8.2.2).
  void add_lines(std::string_view lines);
  // Adds the lines of a server's trailer section. Leaves out lines that are not valid fields, and fields that
  // must not be trailers because they describe the framing (RFC 9110 §6.5.1).
  void add_trailers(std::string_view lines);
  // Adds the end-to-end fields of a server's response, except Content-Length.
  void add_forwarded(const Fields& fields);
  // Adds the response that opens a WebSocket (RFC 8441 §5): `:status` 200, and the end-to-end fields of a
  // server's 101 except Sec-WebSocket-Accept.
  void add_websocket_response(const Fields& fields);
  // Adds the pseudo-header field `:status`.
  void add_status(unsigned status);
  // Adds a request: the pseudo-header fields and the fields of a valid HTTP/1.1 head whose first field is
  // Host. A gRPC call gets the field `te: trailers`, which gRPC servers expect. `secure`: the connection uses
  // TLS. Returns the Content-Length; 0 if the request has no body, nullopt if the body is chunked.
  std::optional<std::uint64_t> add_request(std::string_view head, bool secure);

  [[nodiscard]] std::size_t size() const noexcept { return ends_.size() / 2; }
  // Returns the total size of all names and values in octets.
  [[nodiscard]] std::size_t octets() const noexcept { return text_.size(); }
  // Returns the field at `index`, which must be less than size(). The result is valid until the next change.
  [[nodiscard]] Field operator[](std::size_t index) const noexcept;
  // Returns true if a field has this name, in lower case.
  [[nodiscard]] bool contains(std::string_view name) const noexcept;

 private:
  std::string text_;                 // name, value, name, value ... without separators
  std::vector<std::uint32_t> ends_;  // the positions in text_ at which each name and each value ends
};

// Collects the fields of a request as they arrive, and writes the same request as an HTTP/1.1 head. The head
// parser then checks this head like any other head. So weir forwards nothing that HTTP/1.1 cannot carry, and
// the same rules apply to both protocols.
class Http2RequestText {
 public:
  // `most`: the maximum size of the head in octets. The size is computed as for SETTINGS_MAX_HEADER_LIST_SIZE
  // (RFC 9113 §6.5.2): names, values, and 32 octets for each field.
  explicit Http2RequestText(std::size_t most) noexcept : most_(most) {}

  // Adds the next field of a message. The codec must have checked the field (RFC 9113 §8.3). Does not store
  // fields beyond the bound `most`.
  void add(std::string_view name, std::string_view value);
  [[nodiscard]] bool is_too_large() const noexcept { return size_ > most_; }
  // Returns the size of all fields, computed as for `most`. Includes the fields that were not stored.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Returns true if the request opens a WebSocket (RFC 8441). The function head() then returns the head of a
  // WebSocket handshake in HTTP/1.1.
  [[nodiscard]] bool opens_websocket() const noexcept { return opens_websocket_; }
  // Returns true if the request is a gRPC call.
  [[nodiscard]] bool is_grpc() const noexcept { return is_grpc_; }
  // Returns why HTTP/1.1 cannot carry the request (RFC 9113 §8.3.1). Returns null if HTTP/1.1 can carry it.
  // The text is static.
  [[nodiscard]] const char* fault() const noexcept;
  // Returns the HTTP/1.1 head. `body`: the length of the body in octets; nullopt if the body has not ended
  // yet. `key`: the Sec-WebSocket-Key, if the request opens a WebSocket. A request that opens a WebSocket has
  // no body. If fault() is not null, the head may only be logged.
  [[nodiscard]] std::string head(std::optional<std::uint64_t> body, std::string_view key = {}) const;

 private:
  [[nodiscard]] bool take_pseudo(std::string_view name, std::string_view value);

  const std::size_t most_;
  std::size_t size_ = 0;
  std::string method_, scheme_, path_, authority_;
  std::string host_;     // the Host field
  std::string cookies_;  // the Cookie fields, joined by "; " (RFC 9113 §8.2.3)
  std::string lines_;    // all fields except Host and Cookie, as HTTP/1.1 lines
  bool has_authority_ = false;
  bool has_host_ = false;
  bool several_hosts_ = false;
  bool has_length_ = false;
  bool is_grpc_ = false;
  bool opens_websocket_ = false;
};

// Collects the fields of a response as they arrive, and writes the same response as HTTP/1.1 text. The head
// parser and the body decoder then read this text like the response of an HTTP/1.1 server. The text has the
// body in chunks, so that trailers can follow. Its head has no Transfer-Encoding, and may have a
// Content-Length.
class Http2ResponseText {
 public:
  // `to_head`: the request's method is HEAD. `most`: the bound on a head in octets, computed as for
  // SETTINGS_MAX_HEADER_LIST_SIZE. A head beyond the bound is written with padding and without an end, so
  // that the HTTP/1.1 parser rejects it as too large.
  Http2ResponseText(bool to_head, std::size_t most) noexcept : to_head_(to_head), most_(most) {}

  // Adds the next field of a head or of the trailers. The codec has checked the field (RFC 9113 §8.2, §8.3).
  void add(std::string_view name, std::string_view value);
  // Must be called when all fields of a head or of the trailers were added. For a head, appends it to `out`.
  // For trailers, appends nothing, because end() writes them.
  void end_fields(std::string& out);
  // Appends a piece of the body.
  void add_body(std::string_view octets, std::string& out) const;
  // Appends the end of the body.
  void end(std::string& out) const;

 private:
  const bool to_head_;
  const std::size_t most_;
  std::size_t size_ = 0;  // size of the fields in lines_, computed like the bound `most`
  std::string status_, lines_;
  bool final_ = false;      // true: the final head was written, after any interim heads
  bool has_body_ = false;   // true: the final head permits a body
  bool too_large_ = false;  // true: the head was larger than the bound, so nothing may follow it
};

}  // namespace weir::http
