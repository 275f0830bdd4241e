// What the configuration says of a listening socket.
#pragma once

#include "weir/base/endpoint.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::net {

struct CertificateFiles {
  std::string cert;  // PEM: the certificate, then its chain
  std::string key;   // PEM
};

enum class TlsVersion : std::uint8_t { Tls12, Tls13 };

// Who shows no certificate. A wrong one is refused either way.
enum class ClientAuth : std::uint8_t {
  Require,   // is refused
  Optional,  // is served, without a subject
};

struct TlsSettings {
  std::vector<CertificateFiles> certificates;  // at least one
  TlsVersion min_version = TlsVersion::Tls12;
  std::string client_ca{};  // PEM: the authorities of clients' certificates; empty: clients are not asked
  ClientAuth client_auth = ClientAuth::Require;  // where they are
};

struct ListenerSettings {
  base::Endpoint address;
  std::optional<TlsSettings> tls;
};

}  // namespace weir::net
