// The admin token, stored and compared as a digest.
#pragma once

#include <array>
#include <string_view>

namespace weir::admin {

class Token {
 public:
  // An empty token admits every request.
  explicit Token(std::string_view token);

  // Returns true if the token is right. `authorization`: the field's value, "Bearer TOKEN" (RFC 6750 §2.1).
  // The duration reveals nothing about the token, because whole digests of equal length are compared.
  [[nodiscard]] bool admits(std::string_view authorization) const;
  [[nodiscard]] bool asked() const noexcept { return asked_; }

 private:
  using Digest = std::array<unsigned char, 32>;  // SHA-256
  static Digest digest(std::string_view text);

  bool asked_;
  Digest digest_;
};

}  // namespace weir::admin
