// What an answer tells of limits: its fields, and the body of a refusal. What an exchange sends, and what is
// explained. Pure.
#pragma once

#include "weir/http/answer.hpp"
#include "weir/http/head.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/proxy/server_settings.hpp"

#include <string>
#include <string_view>

namespace weir::proxy {

// Appends the rate-limit fields of the decision's rule; nothing where it has none. `reset_at`: when its key
// is fresh again, by the clock that counted it.
void append_rate_limit_headers(std::string& fields, const policy::Decision& decision,
                               const ServerSettings& server, base::TimePoint reset_at);

// An upstream that limits as well may tell of it. Its RateLimit fields are members of the lists that ours are
// of, and go on beside them. Of X-RateLimit-Limit, -Remaining and -Reset a client reads one each: those of
// whom has less left stay, all three, and the other's go; so nobody is told of more than there is. `ours`: as
// append_rate_limit_headers() writes it.
void keep_stricter(http::Fields& theirs, std::string& ours);

// Makes of a decision that somebody has to wait under `rule` one that refuses them, for so long: their client
// has all the places that it may have, or the wait came to nothing.
void refuse_wait(policy::Decision& decision, const policy::Rule& rule, const limit::Limiter& limiter,
                 base::Duration retry_after, base::TimePoint now) noexcept;

struct RefusalText {
  unsigned status;
  std::string_view content_type;
};
// A refusal by the rule of a request with such fields: adds Retry-After to the fields, and the body to an
// empty one.
RefusalText append_refusal(std::string& fields, std::string& body, const policy::Rule& rule,
                           base::Duration retry_after, const http::Fields& request);

// An error of weir's own: adds what its status wants to the fields, and the body to an empty one.
void append_error(std::string& fields, std::string& body, unsigned status, std::string_view what,
                  const policy::ClientSettings& client);

// A request that rules object to, beside that.
void append_objection(std::string& fields, std::string& body, const policy::Objection& objection,
                      const policy::ClientSettings& client);

}  // namespace weir::proxy
