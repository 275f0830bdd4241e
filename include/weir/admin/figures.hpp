// Values that the metrics and the admin pages show in addition to the workers' counters. Each value was read
// at one moment and does not change afterwards.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::admin {

// The state of one worker's Redis connection, and counts of its events.
struct RedisFigures {
  bool up = false;
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;  // calls without a usable reply, including time-outs
  std::uint64_t timeouts = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t amendments = 0;  // calls that refund or correct charges; no request waits for these calls
  std::uint64_t amendments_lost = 0;
  // gaps that Redis dropped because a key had too many. A gap is free time in a bucket: the slots of
  // units that were taken in advance and then refunded (docs/design/prefetch.md).
  std::uint64_t gaps_lost = 0;
};

// Counts of the units that all workers have taken from Redis in advance, since weir started.
struct LeaseFigures {
  std::uint64_t taken = 0;
  std::uint64_t spent = 0;
  std::uint64_t put_back = 0;  // units that were spent and then refunded
  std::uint64_t returned = 0;  // unspent units that were refunded in Redis
  std::uint64_t lost = 0;      // units that expired, and units of keys that were reset
  std::uint64_t held = 0;      // units that weir has now and has not spent
  // how often weir took no units in advance because it had no room for another key
  std::uint64_t crowded = 0;
};

// One server of an upstream.
struct ServerFigures {
  std::string upstream;
  std::string server;
  bool healthy = false;                 // false: weir has ejected the server, or probes found it down
  std::uint64_t ejections = 0;          // how often weir ejected the server
  bool drained = false;                 // true: an operator keeps requests away from the server
  std::uint32_t weight = 1;             // the present weight: as configured, or as an operator set it
  std::uint32_t configured_weight = 1;  // the weight in the configuration
  std::uint64_t in_flight = 0;          // requests at the server
  std::uint64_t failures = 0;           // failed connects and failed requests
};

// Counts of the look-ups of an upstream's server names since the upstream was added.
struct ResolveFigures {
  std::string upstream;
  std::uint64_t same = 0;     // look-ups that returned the same addresses
  std::uint64_t changed = 0;  // look-ups that returned other addresses
  // Look-ups without a reply or without addresses; weir then keeps the known addresses.
  std::uint64_t failed = 0;
};

// The keys of token issuers at one URL, and counts of their fetches since weir began to fetch them.
struct TokenKeyFigures {
  std::string url;
  std::uint64_t fetched = 0;
  std::uint64_t failed = 0;
  std::uint64_t keys = 0;               // keys that weir has now
  std::optional<base::Duration> age{};  // time since the last successful fetch; absent: there was none
  std::uint64_t waiting = 0;            // requests that wait for a fetch now
  std::string fault{};                  // why the last fetch failed; empty if it succeeded
};

// Resource usage of this process (weir/admin/process.hpp).
struct ProcessFigures {
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_descriptors = 0;
  std::uint64_t most_descriptors = 0;
  double cpu_seconds = 0;  // CPU time of the process, in user and system mode
};

// A certificate of a TLS listener.
struct CertificateFigures {
  std::string listener;  // the listener's address, as configured
  std::string file;
  std::chrono::sys_seconds not_after;
  // The end of the OCSP response's validity. Absent: no OCSP response. The epoch: the response cannot be
  // used.
  std::optional<std::chrono::sys_seconds> stapled_until;
};
// A client certificate that weir shows to servers that ask for one.
struct OwnCertificateFigures {
  std::string shown_to;  // the servers that ask for the certificate, such as "redis" or "upstream "api""
  std::string file;
  std::chrono::sys_seconds not_after;
};
// The revocation lists of a TLS listener.
struct RevocationFigures {
  std::string listener;  // the listener's address, as configured
  std::string file;
  std::chrono::sys_seconds not_after;  // the earliest expiry of the lists in the file
};
// The certificates that weir orders itself (ACME).
struct AcmeFigures {
  std::uint64_t ok = 0;            // orders that brought a certificate
  std::uint64_t failed = 0;        // orders that failed
  std::uint64_t placeholders = 0;  // certificates for which weir still uses a placeholder
};
struct TlsFigures {
  std::vector<CertificateFigures> certificates;
  std::vector<RevocationFigures> revocations{};
  std::vector<OwnCertificateFigures> own{};
  // how many of weir's own TLS clients (one for each upstream, webhooks, Redis) have certificate files
  std::size_t watched = 0;
  std::uint64_t renewed = 0;          // how often weir has read changed files
  std::uint64_t faulty = 0;           // how often weir could not read changed files
  std::optional<AcmeFigures> acme{};  // absent: the configuration has no [acme]
};

// The state of an alert, and counts of its events and messages.
struct AlertFigures {
  std::string name;
  std::string above;  // the threshold, such as "100/min"
  bool firing = false;
  bool per_client = false;    // true: the alert watches each client of a rule separately (ClientRefusals)
  std::uint64_t clients = 0;  // per_client: number of clients for which the alert fires now
  // per_client: how often weir dropped or ignored a client, because it watches only a fixed number of clients
  std::uint64_t replaced = 0;
  // per_client: how often a client exceeded the rate while the alert already fired for max_clients clients
  std::uint64_t unreported = 0;
  // When the alert last began to fire; the epoch: never. per_client: the earliest beginning among the clients
  // for which the alert fires.
  base::TimePoint since{};
  // number of events within the last period; per_client: the highest number of a single client
  std::uint64_t seen = 0;
  std::uint64_t fired = 0;    // how often the alert began to fire
  std::uint64_t ended = 0;    // how often the alert ended
  std::uint64_t posted = 0;   // messages that the webhook accepted
  std::uint64_t retried = 0;  // failed attempts that were retried
  // messages that weir gave up, or whose delivery failed AlertSettings::attempts times
  std::uint64_t failed = 0;
  std::uint64_t superseded = 0;  // messages that a newer message replaced
};

// Counts of the reloads since this process started.
struct ReloadFigures {
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  bool last_ok = true;
  std::chrono::sys_seconds last{};  // when weir began to use the present configuration
};

// Counts of the upgrades. `ok` and `failed` include the upgrades of all processes before this one.
struct UpgradeFigures {
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  // Connections of the old process that this process has dropped: it had no descriptor for the connection, or
  // the next process did not accept the connection. Earlier processes are not included.
  std::uint64_t lost = 0;
};

}  // namespace weir::admin
