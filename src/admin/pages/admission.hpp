// Who may ask the admin listener, and from where: everything that stands between a request and its page.
//
// In this order: the token, else the Host; whether there is such a page, which takes that method; whether a
// page of another site sent it; what body it brings. Browsers are what the second and the fourth are about:
// they send what a stranger's page tells them to, from inside the network that they stand in.
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
  base::Endpoint address;  // where it listens, as configured
};

// The page that is to answer, or the refusal. Pages that are for anybody are so under any name.
[[nodiscard]] std::variant<const Page*, Answer> admit(const Admission& admission, const Question& question);

// Why it is answered by nothing that is for operators; nullopt where it is.
[[nodiscard]] std::optional<Answer> fault_of_asker(const Admission& admission, const Question& question);

// Whether a Host names this listener so that no other site's name can (DNS rebinding): an IP address,
// localhost, or what the configuration calls it. None at all is no browser's.
[[nodiscard]] bool is_own_host(std::string_view host, const base::Endpoint& address);

// Whether a browser says that another site's page sent it (Origin, RFC 6454; Sec-Fetch-Site, W3C Fetch
// Metadata).
[[nodiscard]] bool is_of_another_site(const Question& question);

// Fields of every answer: it is nothing to be framed, guessed at, or told of to others, and a page of ours
// runs scripts and styles of ours alone.
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
