// The parts of an nginx configuration that weir import understands. Settings that a block inherits are copied
// into the block.
#pragma once

#include "cli/import/syntax/directive.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::cli::nginx {

// A limit_req_zone or limit_conn_zone.
struct Zone {
  Position position;
  std::vector<std::string> key;       // parts of weir's key; empty: all requests count together
  bool usable = true;                 // false: weir has no equal for a variable in the zone's key
  bool by_server = false;             // the key has $server_name, so each server has its own counters
  bool by_address = false;            // the key has the client's address
  unsigned optional = 0;              // number of parts of the key that a request may lack
  std::uint64_t rate = 1'000;         // limit_req: thousandths of a request per second, as nginx counts
  std::string limit = "1/s";          // the same rate in weir's notation
  std::vector<std::string> except{};  // addresses and blocks of clients that the limit exempts
};

enum class Over : std::uint8_t { Delay, Refuse };  // what nginx does with requests above the rate

// One limit_req or limit_conn of a location.
struct Limit {
  Position position;
  bool connections = false;  // true: limit_conn; false: limit_req
  std::string zone;
  std::uint64_t number = 0;  // the burst, or the number of connections
  Over over = Over::Delay;
  friend bool operator==(const Limit& a, const Limit& b) {
    return a.connections == b.connections && a.zone == b.zone && a.number == b.number && a.over == b.over;
  }
};

struct AccessRule {
  bool allow = false;
  std::string block;  // an address or a block; empty: all
};

// What `allow unix:` and `deny unix:` say about clients at unix sockets. Open: neither directive applies, but
// `deny all` may still refuse these clients.
enum class PeerAccess : std::uint8_t { Open, Allowed, Denied };

// How weir talks to the servers of a location. Locations with different values need different upstreams.
struct Tuning {
  std::optional<std::chrono::milliseconds> connect, response;
  std::string attempts;               // weir's retry.attempts; empty: weir's default
  std::vector<std::string> retry_on;  // weir's retry.on; empty: weir's default
  bool verify = false;                // proxy_ssl_verify
  std::string ca, name, cert, key;    // from the proxy_ssl_* directives
  friend bool operator==(const Tuning&, const Tuning&) = default;
};

// Header fields: name, and the value with placeholders of weir.
using Fields = std::vector<std::pair<std::string, std::string>>;

// Changes of the header fields of requests or answers.
struct FieldChanges {
  Fields set, add;  // each has a name at most once, regardless of case
  std::vector<std::string> remove;
};

// The proxies that nginx trusts to tell the client's address: set_real_ip_from, real_ip_header,
// real_ip_recursive.
struct RealIp {
  Position position;                 // of the first set_real_ip_from
  std::vector<std::string> trusted;  // addresses of set_real_ip_from
  std::string header = "X-Real-IP";  // nginx's default
  bool recursive = false;
  // False: `trusted` lacks an address that nginx trusts, because weir cannot use it. (weir accepts addresses,
  // blocks and `unix:`.)
  bool complete = true;
  friend bool operator==(const RealIp& a, const RealIp& b) {
    return a.trusted == b.trusted && a.header == b.header && a.recursive == b.recursive &&
           a.complete == b.complete;
  }
};

// Settings that a location inherits from its server, and that a server inherits from the http block.
struct Scope {
  std::vector<Limit> requests, connections;
  std::vector<AccessRule> access;
  PeerAccess unix_peers = PeerAccess::Open;
  unsigned request_status = 503;
  unsigned connection_status = 503;
  bool request_dry_run = false;
  bool connection_dry_run = false;
  std::optional<std::uint64_t> max_body = 1 << 20;  // nullopt: no limit
  std::string content_type = "text/plain";
  Tuning tuning;
  bool passes_host = false;  // proxy_set_header Host $host
  FieldChanges request, response;
  RealIp real_ip;
  std::set<std::string> guards;  // directives by which nginx may refuse; if not empty, weir answers 403
};

// The action of a location: it forwards requests to `upstream`, or answers them.
struct Action {
  std::string scheme;    // http, https, grpc, grpcs; empty: weir answers the request itself
  std::string upstream;  // name of an upstream, or an address
  bool limited = true;   // false: nginx answers by `return`, before it applies limits and access rules
  unsigned status = 404;
  std::string body;
  std::string location{};         // target of a redirect, with placeholders
  std::string strip{}, add{};     // weir's strip_prefix and add_prefix
  std::string pattern{}, path{};  // weir's rewrite: pattern, and the new path
};

enum class Modifier : std::uint8_t { Prefix, FirstPrefix, Exact, Regex, RegexNoCase };  // FirstPrefix: ^~

struct Location {
  Position position;
  Modifier modifier = Modifier::Prefix;
  std::string path;
  Scope scope;
  Action action;
  std::vector<std::string> methods{};  // the methods that limit_except permits; empty: all methods
  std::string only_method{};           // the location is only for requests with this method; empty: for all
};

struct Certificate {
  std::string cert, key, ocsp;
  friend bool operator==(const Certificate&, const Certificate&) = default;
};

struct Tls {
  std::vector<Certificate> certificates;
  std::string min_version = "1.2";
  std::string client_auth;            // in weir's notation; empty: weir requests no client certificate
  std::string client_ca, client_crl;  // names of files
  std::string trusted_ca;             // file of ssl_trusted_certificate
};

struct Listen {
  Position position;
  std::string address;  // in weir's notation
  bool tls = false;
  bool http2 = false;
  bool proxy_protocol = false;
  bool is_default = false;
  bool ipv6_only = false;  // nginx accepts no IPv4 at this address, but weir would
};

// A name of a server. nginx tries the kinds in the order of the enumerators. If several wildcards match,
// nginx chooses the longest.
struct HostName {
  enum class Kind : std::uint8_t { Exact, Leading, Trailing, Regex };
  Kind kind = Kind::Exact;
  std::string pattern;  // in the notation of match.host: "a.example", "*.example" or "~regex"
  friend bool operator==(const HostName&, const HostName&) = default;
};

struct Server {
  Position position;
  std::string label;   // beginning of the names of the server's routes
  bool named = false;  // true: $server_name has a value
  std::vector<HostName> names;
  std::vector<Listen> listens;
  Scope scope;
  Tls tls;
  std::vector<Location> locations;  // in the order of the file; "/" is always among them
};

struct UpstreamServer {
  std::string address;
  std::uint64_t weight = 1;
  std::uint64_t max_in_flight = 0;
};

struct Upstream {
  Position position;
  std::vector<UpstreamServer> servers;
  std::string balance = "round_robin";
  std::vector<std::string> hash_key;
  std::optional<std::uint64_t> max_idle;
  std::optional<std::uint64_t> failures;
  std::optional<std::chrono::milliseconds> fail_timeout, idle;
};

// Settings of the whole process in weir: key of [server], and its value in TOML.
using ServerKeys = std::map<std::string, std::string>;

struct Configuration {
  ServerKeys keys;
  std::string access_log;            // empty: weir's default
  std::vector<std::string> trusted;  // proxies that name the client in X-Forwarded-For
  std::map<std::string, Zone> request_zones, connection_zones;
  std::map<std::string, Upstream> upstreams;
  std::vector<Server> servers;
};

}  // namespace weir::cli::nginx
