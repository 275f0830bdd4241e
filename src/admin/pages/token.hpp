// The admin token. weir keeps and compares only its digest. Immutable; the admin server owns it.
#pragma once

#include <array>
#include <string_view>

namespace weir::admin {

class Token {
 public:
  // An empty token admits every request. The constructor and admits() throw std::runtime_error if OpenSSL
  // cannot compute SHA-256.
  explicit Token(std::string_view token);

  // Returns true if the request has the right token. `authorization`: the value of the Authorization field,
  // "Bearer TOKEN" (RFC 6750 §2.1). The time of the call reveals nothing about the token, because digests of
  // equal length are compared completely.
  [[nodiscard]] bool admits(std::string_view authorization) const;
  // Returns true if a token is configured, so that requests need it.
  [[nodiscard]] bool is_required() const noexcept { return is_required_; }

 private:
  using Digest = std::array<unsigned char, 32>;  // a SHA-256 digest
  static Digest digest(std::string_view text);

  bool is_required_;
  Digest digest_;
};

}  // namespace weir::admin
