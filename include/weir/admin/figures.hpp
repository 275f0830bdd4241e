// Figures that the metrics and the admin page show, beside what workers count themselves. Plain values, each
// as of the moment at which it was asked for.
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
  std::uint64_t failures = 0;  // calls that got no use of an answer, time-outs included
  std::uint64_t timeouts = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t amendments = 0;  // calls that give back or settle, for which nobody waits
  std::uint64_t amendments_lost = 0;
  std::uint64_t gaps_lost = 0;  // of leased buckets: more than are kept
};

// Units of keys in Redis that all workers together have taken in advance, since the start.
struct LeaseFigures {
  std::uint64_t taken = 0;
  std::uint64_t spent = 0;
  std::uint64_t put_back = 0;  // of those spent
  std::uint64_t returned = 0;
  std::uint64_t lost = 0;
  std::uint64_t held = 0;     // at the moment
  std::uint64_t crowded = 0;  // times that a key found no place
};

// One server of an upstream.
struct ServerFigures {
  std::string upstream;
  std::string server;
  bool healthy = false;         // it gets requests
  std::uint64_t ejections = 0;  // times that it was put out
};

// Look-ups of the names of an upstream's servers since it began to serve.
struct ResolveFigures {
  std::string upstream;
  std::uint64_t same = 0;     // the name stood for what it had stood for
  std::uint64_t changed = 0;  // for other addresses
  std::uint64_t failed = 0;   // no answer, or an empty one: those that were known are kept
};

// Of this process (weir/admin/process.hpp). Absent where it cannot be read.
struct ProcessFigures {
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_descriptors = 0;
  std::uint64_t most_descriptors = 0;
  double cpu_seconds = 0;  // user and system
};

// What a TLS listener shows.
struct CertificateFigures {
  std::string listener;  // its address, as configured
  std::string file;
  std::chrono::sys_seconds not_after;
  std::optional<std::chrono::sys_seconds> stapled_until;  // absent: no OCSP response; the epoch: another's
};
// A certificate that weir shows to servers that ask for one.
struct OwnCertificateFigures {
  std::string shown_to;  // "upstream "api"", "redis"
  std::string file;
  std::chrono::sys_seconds not_after;
};
struct TlsFigures {
  std::vector<CertificateFigures> certificates;
  std::vector<OwnCertificateFigures> own{};
  std::size_t watched = 0;    // uses of files of TLS that weir speaks as a client
  std::uint64_t renewed = 0;  // times that changed files were read anew
  std::uint64_t faulty = 0;   // times that they could not be
};

// How an alert stands, and what became of what it had to say.
struct AlertFigures {
  std::string name;
  std::string above;  // "100/min"
  bool firing = false;
  base::TimePoint since{};       // it fires, or fired last; the epoch: it never did
  std::uint64_t seen = 0;        // within the last period
  std::uint64_t fired = 0;       // times that it began
  std::uint64_t ended = 0;       // and was over
  std::uint64_t posted = 0;      // messages that got through
  std::uint64_t retried = 0;     // attempts that failed and were to be made again
  std::uint64_t failed = 0;      // messages that were given up, or took more attempts than they should
  std::uint64_t superseded = 0;  // messages whose place a newer one took
};

// How often the configuration was read anew.
struct ReloadFigures {
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  bool last_ok = true;
  std::chrono::sys_seconds last{};  // when the configuration came into force that is
};

// How often a new process was to take over, by this weir and those before it.
struct UpgradeFigures {
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;  // connections that were to come to this process, and were dropped
};

}  // namespace weir::admin
