// Values that the metrics and the admin pages show in addition to the workers' counters. Each value is of the
// moment when it was read.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::admin {

// One worker's Redis connection.
struct RedisFigures {
  bool up = false;
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;  // calls without a usable reply, including time-outs
  std::uint64_t timeouts = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t amendments = 0;  // calls that refund or settle; no request waits for them
  std::uint64_t amendments_lost = 0;
  std::uint64_t gaps_lost = 0;  // gaps of prefetched units that were dropped for lack of room
};

// Units of keys that all workers have taken from Redis in advance, since the start.
struct LeaseFigures {
  std::uint64_t taken = 0;
  std::uint64_t spent = 0;
  std::uint64_t put_back = 0;  // refunded after they were spent
  std::uint64_t returned = 0;
  std::uint64_t lost = 0;
  std::uint64_t held = 0;     // at present
  std::uint64_t crowded = 0;  // how often a key found no room
};

// One server of an upstream.
struct ServerFigures {
  std::string upstream;
  std::string server;
  bool healthy = false;         // receives requests
  std::uint64_t ejections = 0;  // how often it was ejected
};

// Look-ups of the names of an upstream's servers since the upstream began to serve.
struct ResolveFigures {
  std::string upstream;
  std::uint64_t same = 0;     // the addresses were the same
  std::uint64_t changed = 0;  // the addresses were different
  std::uint64_t failed = 0;   // no reply or an empty one; weir keeps the known addresses
};

// Values of this process (weir/admin/process.hpp). Absent if they cannot be read.
struct ProcessFigures {
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_descriptors = 0;
  std::uint64_t most_descriptors = 0;
  double cpu_seconds = 0;  // user and system time
};

// A certificate of a TLS listener.
struct CertificateFigures {
  std::string listener;  // its address, as configured
  std::string file;
  std::chrono::sys_seconds not_after;
  std::optional<std::chrono::sys_seconds> stapled_until;  // absent: no OCSP response; the epoch: a wrong one
};
// A certificate that weir presents to servers that ask for one.
struct OwnCertificateFigures {
  std::string shown_to;  // "upstream "api"", "redis"
  std::string file;
  std::chrono::sys_seconds not_after;
};
struct TlsFigures {
  std::vector<CertificateFigures> certificates;
  std::vector<OwnCertificateFigures> own{};
  std::size_t watched = 0;    // uses of certificate files for weir's own connections
  std::uint64_t renewed = 0;  // how often changed files were read
  std::uint64_t faulty = 0;   // how often changed files could not be read
};

// The state of an alert, and counts of its messages.
struct AlertFigures {
  std::string name;
  std::string above;  // "100/min"
  bool firing = false;
  base::TimePoint since{};       // when it began to fire last; the epoch: never
  std::uint64_t seen = 0;        // count within the last period
  std::uint64_t fired = 0;       // how often it began to fire
  std::uint64_t ended = 0;       // how often it ended
  std::uint64_t posted = 0;      // messages that the webhook took
  std::uint64_t retried = 0;     // attempts that failed and were retried
  std::uint64_t failed = 0;      // messages that were given up, or needed too many attempts
  std::uint64_t superseded = 0;  // messages that a newer one replaced
};

// Counts of reloads.
struct ReloadFigures {
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  bool last_ok = true;
  std::chrono::sys_seconds last{};  // when the present configuration came into use
};

// Counts of upgrades, by this weir process and those before it.
struct UpgradeFigures {
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;  // connections that were lost on the way to this process
};

}  // namespace weir::admin
