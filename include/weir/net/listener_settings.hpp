// The settings of a listening socket.
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
  std::string ocsp{};  // DER: the OCSP response to staple (RFC 6960); empty: none
  friend bool operator==(const CertificateFiles&, const CertificateFiles&) = default;
};

enum class TlsVersion : std::uint8_t { Tls12, Tls13 };

// How weir treats a client without a certificate. A client with an invalid certificate is always refused.
enum class ClientAuth : std::uint8_t {
  Require,   // weir refuses the client
  Optional,  // weir serves the client; its certificate subject is empty
};

struct TlsSettings {
  std::vector<CertificateFiles> certificates;  // at least one
  TlsVersion min_version = TlsVersion::Tls12;
  std::string client_ca{};  // PEM: authorities that sign clients' certificates; empty: weir requests none
  ClientAuth client_auth = ClientAuth::Require;  // used if `client_ca` is set
  base::Duration ticket_rotation{
      14'400'000'000};  // time in use of a key of session tickets; it opens tickets for twice as long
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

struct ListenerSettings {
  base::Endpoint address;
  std::optional<TlsSettings> tls;
  bool proxy_protocol = false;  // connections begin with a PROXY header
  friend bool operator==(const ListenerSettings&, const ListenerSettings&) = default;
};

}  // namespace weir::net
