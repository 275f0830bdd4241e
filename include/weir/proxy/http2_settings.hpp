// The settings of HTTP/2 on a listener.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/http2_flood.hpp"
#include "weir/http/http2_session.hpp"

namespace weir::proxy {

struct Http2Settings {
  http::Http2Limits limits{};
  http::Http2ResetBound resets{};
  // If the client is silent for this long while streams are open, weir sends a PING. If the client stays
  // silent for the same time again, weir ends the connection.
  base::Duration ping{30'000'000};
  // true: all clients must speak HTTP/2, even those that offer no protocol by ALPN
  bool only = false;
  bool prior_knowledge = false;  // true: plain connections may begin with HTTP/2 (RFC 9113 §3.3)
  friend bool operator==(const Http2Settings&, const Http2Settings&) = default;
};

}  // namespace weir::proxy
