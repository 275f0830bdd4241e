// The settings of HTTP/2 on a listener.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/http2_flood.hpp"
#include "weir/http/http2_session.hpp"

namespace weir::proxy {

struct Http2Settings {
  http::Http2Limits limits{};
  http::Http2ResetBound resets{};
  // After this time of silence while streams are open, weir sends a PING. After the same time again, the
  // connection ends.
  base::Duration ping{30'000'000};
  bool only = false;             // clients speak nothing else, not even those that offer no protocol by ALPN
  bool prior_knowledge = false;  // plain connections may begin with HTTP/2 (RFC 9113 §3.3)
  friend bool operator==(const Http2Settings&, const Http2Settings&) = default;
};

}  // namespace weir::proxy
