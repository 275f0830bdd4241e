// The admin token, kept and compared as a digest.
#pragma once

#include <array>
#include <string_view>

namespace weir::admin {

class Token {
 public:
  // Empty: everybody is admitted.
  explicit Token(std::string_view token);

  // `authorization`: the field's value, "Bearer TOKEN" (RFC 6750 §2.1). How long this takes tells nothing of
  // the token: digests of equal length are compared, all of both.
  [[nodiscard]] bool admits(std::string_view authorization) const;
  [[nodiscard]] bool asked() const noexcept { return asked_; }

 private:
  using Digest = std::array<unsigned char, 32>;  // SHA-256
  static Digest digest(std::string_view text);

  bool asked_;
  Digest digest_;
};

}  // namespace weir::admin
