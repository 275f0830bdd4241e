// The settings of a listener that answers questions instead of proxying requests. A question asks weir for a
// decision: may this request pass, under the rules of the configuration?
#pragma once

#include "weir/base/time.hpp"
#include "weir/proxy/permit_count.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace weir::proxy {

// Immutable, apart from the count of permits. Workers share the object.
struct AskSettings {
  enum class Api : std::uint8_t {
    Decide,  // JSON over HTTP: /v1/decide, /v1/settle and /v1/forward-auth
    Rls,     // gRPC: Envoy's RateLimitService
  };
  Api api = Api::Decide;
  std::string token{};                    // the bearer token that askers must send; empty: none
  base::Duration permit_ttl{60'000'000};  // how long a permit waits for its settlement
  std::size_t max_permits = 0;            // largest number of open permits, of all workers together
  // counts the listener's open permits; not null
  std::shared_ptr<PermitCount> open_permits = std::make_shared<PermitCount>();
  // True: weir charges all descriptors of a call or none. False: weir charges each descriptor by itself.
  bool together = true;
};

}  // namespace weir::proxy
