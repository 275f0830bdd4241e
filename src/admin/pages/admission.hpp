// Decides whether the admin listener answers a request. Checks, in this order:
// * the token;
// * the Host, if no token is set;
// * the page and its method;
// * whether a page of another site sent the request;
// * the body.
// A hostile site's page can make a browser inside the network send requests. The checks of the Host and of
// the site reject these requests.
#pragma once

#include "admin/pages/answer.hpp"
#include "admin/pages/pages.hpp"
#include "admin/pages/token.hpp"

#include "weir/base/endpoint.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace weir::admin {

struct Admission {
  Token token;
  base::Endpoint address;  // the address of the admin listener, as configured
};

// Returns the page that answers the request, or the response that refuses the request. For pages that anybody
// may read, the token and the Host are not checked.
[[nodiscard]] std::variant<const Page*, Answer> admit(const Admission& admission,
                                                      const PageRequest& question);

// Returns the response that refuses the request if its sender may not read data for operators; otherwise
// nullopt.
[[nodiscard]] std::optional<Answer> fault_of_asker(const Admission& admission, const PageRequest& question);

// Returns true if the Host cannot be the name of another site (DNS rebinding). The Host must be an IP
// address, localhost or the configured name. An empty Host is accepted, because browsers always send a Host.
[[nodiscard]] bool is_own_host(std::string_view host, const base::Endpoint& address);

// Returns true if the browser reports that another site's page sent the request (Origin, RFC 6454;
// Sec-Fetch-Site, W3C Fetch Metadata).
[[nodiscard]] bool is_of_another_site(const PageRequest& question);

// Header fields of every response. The fields forbid browsers to show the response in a frame, to guess the
// type of the response, and to send the address of the page to other sites. The dashboard's page may use only
// its own scripts and styles.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kGuardingFields{
    {{"Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
     {"X-Content-Type-Options", "nosniff"},
     {"X-Frame-Options", "DENY"},
     {"Referrer-Policy", "no-referrer"},
     {"Cross-Origin-Opener-Policy", "same-origin"},
     {"Cross-Origin-Resource-Policy", "same-origin"}}};

}  // namespace weir::admin
