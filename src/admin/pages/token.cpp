#include "admin/pages/token.hpp"

#include <algorithm>
#include <stdexcept>

#include <openssl/crypto.h>
#include <openssl/evp.h>

namespace weir::admin {

namespace {

// Returns true if the field's value begins with this scheme, in any letter case (RFC 9110 §11.1). `scheme`
// must be in lower case.
bool begins_with_scheme(std::string_view authorization, std::string_view scheme) {
  const auto same = [](char actual, char wanted) {
    return (actual >= 'A' && actual <= 'Z' ? static_cast<char>(actual - 'A' + 'a') : actual) == wanted;
  };
  return authorization.size() >= scheme.size() &&
         std::equal(scheme.begin(), scheme.end(), authorization.begin(),
                    [&](char wanted, char actual) { return same(actual, wanted); });
}

}  // namespace

Token::Token(std::string_view token) : is_required_(!token.empty()), digest_(digest(token)) {}

Token::Digest Token::digest(std::string_view text) {
  Digest out;
  if (EVP_Digest(text.data(), text.size(), out.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 is not available");
  return out;
}

bool Token::admits(std::string_view authorization) const {
  if (!is_required_) return true;
  constexpr std::string_view kScheme = "bearer ";
  if (!begins_with_scheme(authorization, kScheme)) return false;
  const Digest offered = digest(authorization.substr(kScheme.size()));
  return CRYPTO_memcmp(offered.data(), digest_.data(), digest_.size()) == 0;
}

}  // namespace weir::admin
