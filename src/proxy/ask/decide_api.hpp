// The API of listeners with `serves = "decide"`: JSON over HTTP (docs/ask.md).
#pragma once

#include "proxy/ask/ask_call.hpp"

#include "weir/net/task.hpp"

namespace weir::proxy {

// Serves a call on a listener with `serves = "decide"`. `call` must outlive the task.
[[nodiscard]] net::Task<Ending> serve_decide(AskCall& call);

}  // namespace weir::proxy
