// Parses the authority's JSON messages (RFC 8555 §7.1, RFC 9773 §4.2). Pure. The errors name the member that
// is missing or has a wrong type.
#pragma once

#include "weir/acme/renewal.hpp"
#include "weir/base/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::acme {

struct Directory {
  std::string new_nonce;
  std::string new_account;
  std::string new_order;
  std::string renewal_info{};           // empty: the authority does not offer ARI
  bool needs_external_account = false;  // true: the authority demands an ExternalAccount
};
[[nodiscard]] base::Result<Directory> parse_directory(std::string_view text);

// An error that the authority reports (RFC 7807).
struct Problem {
  std::string type;    // without the prefix "urn:ietf:params:acme:error:"
  std::string detail;  // for people
};
// Returns an empty problem if the text is not a problem document (RFC 7807).
[[nodiscard]] Problem parse_problem(std::string_view text);
// Returns "DETAIL (TYPE)", at most 500 bytes and without control characters.
[[nodiscard]] std::string in_words(const Problem& problem);

enum class Status : std::uint8_t { Pending, Ready, Processing, Valid, Invalid };

struct Order {
  Status status = Status::Pending;
  std::vector<std::string> authorizations;  // URLs
  std::string finalize;
  std::string certificate{};  // URL; empty until the status is Valid
  Problem error{};
};
[[nodiscard]] base::Result<Order> parse_order(std::string_view text);

struct Challenge {
  std::string type;
  std::string url;
  std::string token;
};
struct Authorization {
  Status status = Status::Pending;
  std::string name;
  std::vector<Challenge> challenges;  // only challenges with a token
  Problem error{};                    // why a challenge failed
};
[[nodiscard]] base::Result<Authorization> parse_authorization(std::string_view text);

[[nodiscard]] base::Result<RenewalWindow> parse_renewal_info(std::string_view text);
// Parses a time of RFC 3339, such as "2026-01-02T03:04:05Z" or "…05.5+01:00". Drops fractions of a second.
[[nodiscard]] std::optional<SysTime> parse_time(std::string_view text);

// Returns true if the text can be a token: 1 to 128 characters of base64url. Other texts are not safe as the
// name of a file.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

}  // namespace weir::acme
