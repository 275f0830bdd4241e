// Reads the question of a proxy that asks about a request of its client: the subrequest of nginx's
// auth_request, or the request of Traefik's and Caddy's forward authentication. Pure.
#pragma once

#include "weir/ask/question.hpp"
#include "weir/base/result.hpp"
#include "weir/http/head.hpp"

#include <string_view>

namespace weir::ask {

// The field in which an asker may send the listener's token, so that Authorization remains the client's.
inline constexpr std::string_view kTokenField = "X-Weir-Token";

// Returns the question. The proxy must describe its client's request in X-Forwarded-Uri and X-Forwarded-For,
// and should do so in X-Forwarded-Method, X-Forwarded-Host and X-Forwarded-Proto. All other fields count
// as the client's, apart from fields that concern the connection. `authorization_is_token`: Authorization
// contains the listener's token, so this field is not the client's.
//
// The client's address is the last one of X-Forwarded-For, because the asking proxy has added it. The
// addresses before it remain in the question, for trusted_proxies.
[[nodiscard]] base::Result<Question> forwarded_question(const http::RequestHead& head,
                                                        bool authorization_is_token);

// Returns the status with which the proxy wants refusals, from the query "refuse=403". Returns 0 if the query
// does not ask for a status.
[[nodiscard]] base::Result<unsigned> refusal_status(std::string_view query);

}  // namespace weir::ask
