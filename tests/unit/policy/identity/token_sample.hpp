// Valid and invalid tokens for tests.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace weir::policy {

inline const std::string kSecret = "a secret of more than thirty-two octets";

inline std::string base64url(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  text.resize(static_cast<std::size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                       reinterpret_cast<const unsigned char*>(bytes.data()),
                                                       static_cast<int>(bytes.size()))));
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

// Returns a token with a valid HMAC-SHA256 signature under `key`, whatever its header says.
inline std::string signed_token(std::string_view claims, std::string_view key,
                                std::string_view header = R"({"alg":"HS256","typ":"JWT"})") {
  const auto text = base64url(header) + "." + base64url(claims);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return text + "." + base64url({reinterpret_cast<const char*>(digest), size});
}

}  // namespace weir::policy
