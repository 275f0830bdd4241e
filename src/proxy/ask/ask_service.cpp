#include "proxy/ask/ask_service.hpp"

#include "proxy/ask/decide_api.hpp"
#include "proxy/ask/forward_auth.hpp"
#include "proxy/ask/rls_service.hpp"

#include "weir/ask/forwarded_question.hpp"

#include <openssl/crypto.h>

namespace weir::proxy {

namespace {

constexpr std::string_view kScheme = "bearer ";

// Returns the token of an Authorization field: "Bearer TOKEN" (RFC 6750 §2.1); empty if there is none.
std::string_view bearer_token(std::string_view authorization) noexcept {
  const bool bears = authorization.size() > kScheme.size() &&
                     http::equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme);
  return bears ? authorization.substr(kScheme.size()) : std::string_view{};
}

// Returns true if the texts are equal. The time of the call reveals at most the length of the token.
bool is_equal(std::string_view offered, std::string_view token) noexcept {
  return offered.size() == token.size() && CRYPTO_memcmp(offered.data(), token.data(), token.size()) == 0;
}

}  // namespace

net::Task<Ending> AskService::run() {
  if (!check_token()) return refuse_access();
  return call_.settings.api == AskSettings::Api::Rls ? serve_rls(call_) : serve_decide(call_);
}

// Returns true if the call has the token of the listener, in Authorization or in X-Weir-Token. X-Weir-Token
// is for askers that forward the Authorization of their client.
bool AskService::check_token() {
  const std::string_view token = call_.settings.token;
  if (token.empty()) return true;
  const auto& fields = call_.buffers.head.fields;
  const auto* authorization = http::find_field(fields, http::FieldId::Authorization);
  call_.authorization_is_token =
      authorization != nullptr && is_equal(bearer_token(authorization->value), token);
  if (call_.authorization_is_token) return true;
  const auto* field = http::find_field(fields, ask::kTokenField);
  return field != nullptr && is_equal(field->value, token);
}

// A proxy that asks by forward authentication passes a 401 on to its client, who can do nothing about the
// proxy's token. So weir answers 500, which the proxy's operators notice.
net::Task<Ending> AskService::refuse_access() {
  call_.worker.counters.ask.denied.add();
  if (call_.settings.api == AskSettings::Api::Decide && call_.buffers.head.path == kForwardAuthPath)
    return call_.error(500, "the asking proxy must send the token of weir's listener in X-Weir-Token");
  return call_.error(401, "this listener needs its token; send \"Authorization: Bearer TOKEN\"",
                     "WWW-Authenticate: Bearer\r\n");
}

}  // namespace weir::proxy
