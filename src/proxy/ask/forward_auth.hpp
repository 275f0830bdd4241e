// Answers proxies that ask whether a request of their client may pass: nginx (auth_request), Traefik and
// Caddy.
#pragma once

#include "proxy/ask/ask_call.hpp"

#include "weir/net/task.hpp"

#include <string_view>

namespace weir::proxy {

inline constexpr std::string_view kForwardAuthPath = "/v1/forward-auth";

// Serves /v1/forward-auth. Answers 200 if the request may pass, and otherwise with the refusal. If the
// request has to wait for its departure, so does the answer. `call` must outlive the task.
[[nodiscard]] net::Task<Ending> serve_forward_auth(AskCall& call);

}  // namespace weir::proxy
