// What the configuration says of a listening socket.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::net {

struct CertificateFiles {
  std::string cert;    // PEM: the certificate, then its chain
  std::string key;     // PEM
  std::string ocsp{};  // DER: the authority's word on the certificate (RFC 6960), stapled; empty: none
  friend bool operator==(const CertificateFiles&, const CertificateFiles&) = default;
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
  base::Duration ticket_rotation{
      14'400'000'000};  // a key of session tickets is used so long, and good twice as long
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

struct ListenerSettings {
  base::Endpoint address;
  std::optional<TlsSettings> tls;
  bool proxy_protocol = false;  // what connects says first for whom
  friend bool operator==(const ListenerSettings&, const ListenerSettings&) = default;
};

}  // namespace weir::net
