// Where an exchange with an upstream stands.
#pragma once

#include "proxy/exchange/exchange.hpp"

#include "weir/proxy/min_rate.hpp"

namespace weir::proxy {

// What one try hands to the next.
struct Exchange::Attempt {
  std::string_view body;         // the whole request body, where it came with the head
  std::string_view upgrade;      // the protocol that was asked for; the route's
  bool whole = false;            // `body` is all of it, or there is none
  bool fresh = false;            // use no waiting connection: the last one was dead
  bool handed_over = false;      // bytes of the request were sent to some server
  bool silent = false;           // the connection ended before a byte of an answer
  bool client_broken = false;    // what it was sent ends within a head: nothing may follow
  bool client_ended = false;     // the wait for the answer ended because of the client alone
  unsigned servers = 0;          // that got the request
  bool cut_short = false;        // the wait under way ends with all attempts, before its server had its time
  std::uint64_t tried = 0;       // servers that failed, a bit for each
  std::uint64_t word = 0;        // what stands for the client where it has a server of its own
  base::Duration connecting{0};  // spent on connections that came to nothing
  std::string alert;             // with which the server ended TLS in place of an answer
  bool oversized = false;        // the server answered with a head that is too large to be passed on
  bool heard = false;            // it sent an interim answer: it has the request
  base::TimePoint deadline = base::TimePoint::max();  // of all attempts together
  std::optional<base::Duration> room_after;           // servers are left, and have no room
  bool room_at_any_time = false;                      // likewise, and requests in flight are in the way
  unsigned status = 502;                              // what to answer when nothing is left to try
  std::string_view what = "the upstream cannot be reached";
};

struct Exchange::ClientReading {
  MinRateCheck pace;
  std::uint64_t taken = 0;   // octets that its system had, when it was waited for last
  base::Duration stalled{};  // since it took any
};

}  // namespace weir::proxy
