// The settings of certificates that weir orders by itself (ACME, RFC 8555).
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::acme {

// How weir proves that it controls a name. The enumerators are in the order of the schema's choices.
enum class ChallengeKind : std::uint8_t {
  Http01,     // the authority fetches a text from port 80 (RFC 8555 §8.3)
  TlsAlpn01,  // the authority reads a certificate from port 443 (RFC 8737)
};

// Returns the name of the challenge in ACME's messages: "http-01" or "tls-alpn-01".
[[nodiscard]] const char* name_of(ChallengeKind kind) noexcept;

// An account that was created at the authority's web site. weir binds its own account to it (RFC 8555
// §7.3.4).
struct ExternalAccount {
  std::string kid;       // the account's name
  std::string hmac_key;  // the secret, as bytes
  friend bool operator==(const ExternalAccount&, const ExternalAccount&) = default;
};

struct Settings {
  std::string directory;  // URL of the authority's directory, "https://…"
  std::string email{};    // e-mail address that weir gives to the authority; empty: none
  std::string folder;     // where weir keeps the account's key, certificates and pending challenges
  ChallengeKind challenge = ChallengeKind::Http01;
  std::string
      // PEM file: authorities that may sign the TLS certificate of the directory's server; empty: the
      // system's
      ca{};
  std::optional<ExternalAccount> external_account{};
  base::Duration retry{std::chrono::minutes(2)};  // the pause after the first failed order
  friend bool operator==(const Settings&, const Settings&) = default;
};

// The DNS names of one certificate, in lower case; at least one, without repetitions.
using Names = std::vector<std::string>;

// Returns the file of the certificate for these names: the key, the certificate and its chain, in one PEM
// file. Certificates whose first names differ have different files.
[[nodiscard]] std::string certificate_file(const std::string& folder, const Names& names);

// Returns what is wrong with a name for a certificate; empty if the name is valid.
[[nodiscard]] std::string fault_in_name(const std::string& name);

}  // namespace weir::acme
