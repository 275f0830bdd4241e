// Answers the questions of Envoy: its RateLimitService by gRPC.
#pragma once

#include "proxy/ask/ask_call.hpp"

#include "weir/net/task.hpp"

namespace weir::proxy {

// Serves a call on a listener with `serves = "rls"`. `call` must outlive the task.
[[nodiscard]] net::Task<Ending> serve_rls(AskCall& call);

}  // namespace weir::proxy
