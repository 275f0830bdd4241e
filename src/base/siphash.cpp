#include "weir/base/siphash.hpp"

#include <bit>

namespace weir::base {

static_assert(std::endian::native == std::endian::little, "words are read in the machine's order");

namespace {

std::uint64_t load(const char* at, std::size_t count) noexcept {
  std::uint64_t w = 0;
  std::memcpy(&w, at, count);
  return w;
}

}  // namespace

SipHash128::SipHash128(SipKey key) noexcept
    : v0_(key.k0 ^ 0x736f6d6570736575ULL),
      v1_(key.k1 ^ 0x646f72616e646f6dULL ^ 0xee),
      v2_(key.k0 ^ 0x6c7967656e657261ULL),
      v3_(key.k1 ^ 0x7465646279746573ULL) {}

// Works on a local copy of the object. If the code used *this, the compiler would write the state to memory
// after each read through a char pointer.
void SipHash128::part(std::string_view bytes) noexcept {
  SipHash128 hash = *this;
  hash.word(bytes.size());
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) hash.word(load(at, 8));
  if (left > 0) hash.word(load(at, left));
  *this = hash;
}

Digest128 SipHash128::finish(std::uint64_t last) noexcept {
  word(last);
  v2_ ^= 0xee;
  for (int i = 0; i < 4; ++i) round();
  const std::uint64_t lo = v0_ ^ v1_ ^ v2_ ^ v3_;
  v1_ ^= 0xdd;
  for (int i = 0; i < 4; ++i) round();
  return {lo, v0_ ^ v1_ ^ v2_ ^ v3_};
}

Digest128 SipHash128::digest() noexcept {
  return finish((words_ * 8) << 56);
}

Digest128 siphash128(SipKey key, std::string_view bytes) noexcept {
  SipHash128 hash(key);
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) hash.word(load(at, 8));
  return hash.finish((static_cast<std::uint64_t>(bytes.size()) << 56) | load(at, left));
}

}  // namespace weir::base
