// The settings of a listening socket.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::net {

struct CertificateFiles {
  std::string cert;    // PEM file: the certificate, followed by its chain
  std::string key;     // PEM file: the private key
  std::string ocsp{};  // DER file: the OCSP response to staple (RFC 6960); empty: none
  // The names for which weir orders the certificate itself (ACME). `cert` and `key` are then the same file,
  // which weir writes. Empty: somebody else provides the files.
  std::vector<std::string> names{};
  friend bool operator==(const CertificateFiles&, const CertificateFiles&) = default;
};

enum class TlsVersion : std::uint8_t { Tls12, Tls13 };

// The treatment of a client that shows no certificate. weir always rejects a client with an invalid
// certificate.
enum class ClientAuth : std::uint8_t {
  Require,   // weir rejects the client
  Optional,  // weir serves the client, with an empty certificate subject
};

// The HTTP versions that clients may speak.
struct Protocols {
  bool http1 = true;
  bool h2 = false;   // true: clients may use HTTP/2 over TLS, chosen by ALPN
  bool h2c = false;  // true: clients may use HTTP/2 without TLS, by prior knowledge (RFC 9113 §3.3)
  friend bool operator==(const Protocols&, const Protocols&) = default;
};

// Limits for HTTP/2 connections.
struct Http2Options {
  std::uint32_t max_streams = 100;            // largest number of open requests on one connection
  std::uint32_t stream_window = 64 << 10;     // octets of request bodies that weir buffers for one stream
  std::uint32_t connection_window = 1 << 20;  // octets of request bodies that weir buffers for one connection
  std::uint32_t resets = 100;  // largest number of streams that a client may reset within `resets_within`
  base::Duration resets_within{10'000'000};
  base::Duration ping{30'000'000};  // weir sends a PING after a silence of this length
  friend bool operator==(const Http2Options&, const Http2Options&) = default;
};

struct TlsSettings {
  std::vector<CertificateFiles> certificates;  // at least one certificate
  TlsVersion min_version = TlsVersion::Tls12;
  std::string client_ca{};   // PEM file: authorities that sign client certificates; empty: weir requests none
  std::string client_crl{};  // PEM file: revocation lists of these authorities; empty: none are checked
  ClientAuth client_auth = ClientAuth::Require;  // used if `client_ca` is set
  base::Duration ticket_rotation{
      14'400'000'000};    // how long a key encrypts tickets; the key decrypts tickets for twice this time
  Protocols protocols{};  // the protocols that weir offers by ALPN
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

// The service of a listener.
enum class Serves : std::uint8_t {
  Proxy,   // weir forwards requests to servers
  Decide,  // weir answers questions in JSON about other requests, and forwards nothing
  Rls,     // weir answers questions of Envoy's RateLimitService (gRPC)
};

// Settings of a listener that answers questions.
struct AskOptions {
  std::string token{};                    // the bearer token that askers must send; empty: none
  base::Duration permit_ttl{60'000'000};  // how long a permit waits for its settlement
  std::size_t max_permits = 10'000;       // largest number of open permits, of all workers together
  bool together = true;  // true: weir charges all descriptors of a call or none; false: each by itself
  friend bool operator==(const AskOptions&, const AskOptions&) = default;
};

struct ListenerSettings {
  base::Endpoint address;
  std::optional<TlsSettings> tls;
  bool proxy_protocol = false;  // true: each connection begins with a PROXY header
  Protocols protocols{};
  Http2Options http2{};
  std::string name{};  // name for the conditions of routes and rules; empty: none
  Serves serves = Serves::Proxy;
  AskOptions ask{};  // used unless `serves` is Proxy
  friend bool operator==(const ListenerSettings&, const ListenerSettings&) = default;
};

}  // namespace weir::net
