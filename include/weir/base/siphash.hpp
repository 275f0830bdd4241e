// SipHash-2-4 with 128-bit output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
//
// The digest is the client's name in the key table and in Redis. A stranger must not be able to make two
// clients get the same digest, or to recover an API key from a digest. Only a pseudo-random function under a
// secret key prevents both attacks. The hash xxHash is not such a function. OpenSSL also offers SipHash
// (EVP_MAC "SIPHASH"), but its set-up makes each call ten times as slow. The tests compare weir's
// implementation with OpenSSL's.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::base {

struct SipKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
  friend constexpr bool operator==(const SipKey&, const SipKey&) = default;
};

struct Digest128 {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
  friend constexpr auto operator<=>(const Digest128&, const Digest128&) = default;
};

// Hashes a sequence of parts. The length of each part is hashed too, so ("ab", "c") and ("a", "bc") differ.
// Call `part()` for each part, then `digest()` once.
class SipHash128 {
 public:
  explicit SipHash128(SipKey key) noexcept;

  void part(std::string_view bytes) noexcept;
  void part(std::uint64_t number) noexcept { word(number); }

  [[nodiscard]] Digest128 digest() noexcept;

 private:
  friend Digest128 siphash128(SipKey key, std::string_view bytes) noexcept;

  // Always inlined, like round(): a function call would take as long as the computation itself.
  [[gnu::always_inline]] void word(std::uint64_t w) noexcept {
    v3_ ^= w;
    round();
    round();
    v0_ ^= w;
    ++words_;
  }
  [[gnu::always_inline]] void round() noexcept {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }
  [[nodiscard]] Digest128 finish(std::uint64_t last) noexcept;

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t words_ = 0;
};

// Returns SipHash-2-4-128 of `bytes`, as the reference implementation defines it (little endian).
[[nodiscard]] Digest128 siphash128(SipKey key, std::string_view bytes) noexcept;

}  // namespace weir::base
