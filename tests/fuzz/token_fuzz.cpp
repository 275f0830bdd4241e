// Fuzzes JSON Web Tokens. An unsigned text must never be accepted. A signed token may be accepted only with
// the right issuer and audience, and only while it is valid. The accepted claims must be those of the
// payload.
#include "fuzz/input.hpp"

#include "weir/policy/token.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include <boost/json.hpp>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace weir::fuzz {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

const std::string kSecret = "a secret of more than thirty-two octets";
constexpr base::TimePoint kNow{1'700'000'000s};
constexpr auto kLeeway = 30s;

const policy::TokenVerifier& verifier() {
  static const auto kVerifier =
      policy::TokenVerifier::make({"HS256", kSecret, "issuer", "audience", kLeeway}).value();
  return kVerifier;
}

std::string base64url(std::string_view octets) {
  std::string text(4 * ((octets.size() + 2) / 3) + 1, '\0');
  const auto size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(octets.data()), static_cast<int>(octets.size()));
  text.resize(static_cast<std::size_t>(size));
  while (text.ends_with('=')) text.pop_back();
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::string signature_of(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), kSecret.data(), static_cast<int>(kSecret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return base64url({reinterpret_cast<const char*>(digest.data()), size});
}

bool is_signed(std::string_view token) {
  const auto dot = token.rfind('.');
  return dot != std::string_view::npos && token.substr(dot + 1) == signature_of(token.substr(0, dot));
}

bool names(const json::value& said, std::string_view name) {
  if (said.is_string()) return std::string_view(said.as_string().data(), said.as_string().size()) == name;
  return said.is_array() &&
         std::any_of(said.as_array().begin(), said.as_array().end(),
                     [&](const json::value& one) { return one.is_string() && names(one, name); });
}

// Checks the claims of a payload that this fuzz target signed and that weir accepted.
void check_believed(std::string_view payload, const policy::Claims& claims) {
  json::error_code ec;
  const auto said = json::parse(json::string_view(payload.data(), payload.size()), ec);
  if (ec || !said.is_object()) return;  // weir's parser accepts some JSON that this parser rejects
  const auto* issuer = said.as_object().if_contains("iss");
  const auto* audience = said.as_object().if_contains("aud");
  require(issuer != nullptr && names(*issuer, "issuer"), "a token of another issuer is refused");
  require(audience != nullptr && names(*audience, "audience"), "a token for another audience is refused");
  require(claims.find("iss") == "issuer", "claims are the payload's");
  const auto* expiry = said.as_object().if_contains("exp");
  if (expiry != nullptr && expiry->is_int64())
    require(expiry->get_int64() + kLeeway.count() > kNow.time_since_epoch() / 1s,
            "an expired token is refused");
}

void run(std::string_view input) {
  policy::Claims claims;
  const bool believed = !verifier().verify(input, kNow, claims);
  require(!believed || is_signed(input), "a token that nobody signed is refused");
  const auto end = std::min(input.find('\n'), input.size());
  const auto payload = input.substr(std::min(input.size(), end + 1));
  const auto text = base64url(input.substr(0, end)) + "." + base64url(payload);
  if (!verifier().verify(text + "." + signature_of(text), kNow, claims)) check_believed(payload, claims);
  require(verifier().verify(text + ".", kNow, claims).has_value(), "a token without a signature is refused");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
