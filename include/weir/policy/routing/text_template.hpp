// Texts with placeholders, such as "https://{host}{uri}". weir parses them once, when it reads the
// configuration. Pure.
#pragma once

#include "weir/base/result.hpp"
#include "weir/policy/match.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

enum class Placeholder : std::uint8_t {
  Host,         // the request's host in normal form, without its port
  Uri,          // path and query as the client sent them, the path with one slash at its beginning
  Path,         // the path in normal form
  Query,        // the query without '?'
  Method,       // the request's method
  ClientIp,     // the client's address; empty for a unix socket
  User,         // the client's user, found as [client] says; empty if unknown
  Org,          // the client's organisation, found as [client] says; empty if unknown
  Tier,         // the client's tier, found as [client] says; empty if unknown
  Service,      // the client's service, found as [client] says; empty if unknown
  RequestId,    // the value of X-Request-ID
  CertSubject,  // the subject of the client's certificate; empty if it shows none
  CertDer,      // the certificate itself, as a value of Client-Cert (RFC 9440)
};

// Where the text is used, which decides what is escaped in the values. An escaped value cannot end the field,
// or begin another element of a list in the field.
enum class Purpose : std::uint8_t {
  // in a header field: commas, quotes, backslashes, blanks and octets that are not visible ASCII become %XX.
  // In values that are no part of the request's target, ';' and '%' become %XX, too.
  Field,
  // in a URL: octets that a URL cannot have become %XX. In values that are no part of the request's target,
  // every octet becomes %XX, except letters, digits, '-', '.', '_' and '~'.
  Url,
};

// The values of the placeholders. The views must stay valid while the object is used.
struct TemplateValues {
  const Request& request;
  std::string_view request_id;
};

class TextTemplate {
 public:
  // A constant text, then perhaps a placeholder.
  struct Piece {
    std::string text;
    std::optional<Placeholder> placeholder;
  };

  TextTemplate() = default;
  // Parses a text in which "{host}" is a placeholder, and "{{" and "}}" are braces. The error says what to
  // write.
  [[nodiscard]] static base::Result<TextTemplate> parse(std::string_view text);

  void append(std::string& out, const TemplateValues& values, Purpose purpose) const;
  [[nodiscard]] bool has(Placeholder placeholder) const noexcept;
  // Returns true if a value may come from the client's token.
  [[nodiscard]] bool uses_token() const noexcept {
    return has(Placeholder::User) || has(Placeholder::Org) || has(Placeholder::Service) ||
           has(Placeholder::Tier);
  }
  [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }
  // Returns the text as it was parsed.
  [[nodiscard]] const std::string& describe() const noexcept { return text_; }

 private:
  std::string text_;
  std::vector<Piece> pieces_;
};

// Returns the placeholder in braces, such as "{host}".
[[nodiscard]] std::string_view name_of(Placeholder placeholder) noexcept;

// Returns why the text must not be the target of a redirect, and what to write instead; empty if it may be.
// The target must be a URL of http or https, or a path. Its host must consist of constant text and {host}
// only, so that clients cannot choose the host of the redirect.
[[nodiscard]] std::string fault_of_location(const TextTemplate& location);

}  // namespace weir::policy
