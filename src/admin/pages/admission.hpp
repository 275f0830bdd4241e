// Decides whether a request may read an admin page.
//
// The checks in order: the token, or without one the Host; the page and its method; whether another site's
// page sent the request; the body. The Host check and the site check concern browsers. A browser
// inside the network sends what a stranger's page tells it to send.
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
  base::Endpoint address;  // of the listener, as configured
};

// Returns the page, or the refusal. Pages for anybody ignore the token and the Host.
[[nodiscard]] std::variant<const Page*, Answer> admit(const Admission& admission,
                                                      const PageRequest& question);

// Returns the refusal of a request that may not see data for operators; nullopt if it may.
[[nodiscard]] std::optional<Answer> fault_of_asker(const Admission& admission, const PageRequest& question);

// Returns true if no other site's name can be in the Host (DNS rebinding). Such a Host is an IP address,
// localhost or the configured name. A request without Host passes, because browsers always send one.
[[nodiscard]] bool is_own_host(std::string_view host, const base::Endpoint& address);

// Returns true if the browser says that another site's page sent the request (Origin, RFC 6454;
// Sec-Fetch-Site, W3C Fetch Metadata).
[[nodiscard]] bool is_of_another_site(const PageRequest& question);

// Header fields of every response. Browsers must not frame it, guess its type, or reveal its address to
// others. The dashboard's page may run only its own scripts and styles.
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
