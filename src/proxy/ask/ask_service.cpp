#include "proxy/ask/ask_service.hpp"

#include "proxy/ask/decide_api.hpp"
#include "proxy/ask/rls_service.hpp"

#include <openssl/crypto.h>

namespace weir::proxy {

namespace {

constexpr std::string_view kScheme = "bearer ";

// Returns the token of an Authorization field: "Bearer TOKEN" (RFC 6750 §2.1); empty if there is none.
std::string_view token_in(std::string_view authorization) noexcept {
  const bool bears = authorization.size() > kScheme.size() &&
                     http::equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme);
  return bears ? authorization.substr(kScheme.size()) : std::string_view{};
}

}  // namespace

net::Task<Ending> AskService::run() {
  if (!has_token()) return refuse_access();
  return call_.settings.api == AskSettings::Api::Rls ? serve_rls(call_) : serve_decide(call_);
}

// Returns true if the call has the token of the listener. The time of the comparison reveals at most the
// length of the token.
bool AskService::has_token() const {
  const std::string_view token = call_.settings.token;
  if (token.empty()) return true;
  const auto* field = http::find_field(call_.buffers.head.fields, http::FieldId::Authorization);
  const auto offered = field != nullptr ? token_in(field->value) : std::string_view{};
  return offered.size() == token.size() && CRYPTO_memcmp(offered.data(), token.data(), token.size()) == 0;
}

net::Task<Ending> AskService::refuse_access() {
  call_.worker.counters.ask.denied.add();
  return call_.error(401, "this listener needs its token; send \"Authorization: Bearer TOKEN\"",
                     "WWW-Authenticate: Bearer\r\n");
}

}  // namespace weir::proxy
