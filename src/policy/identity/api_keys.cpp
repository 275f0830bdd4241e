// This file uses the deprecated functions SHA256_*(), because they need only a context on the stack. SHA256()
// and EVP_Q_digest() look up the algorithm and allocate a context in each call: for a key of 34 characters,
// they take 295 ns instead of 51 ns (OpenSSL 3.0).
#define OPENSSL_SUPPRESS_DEPRECATED

#include "weir/policy/api_keys.hpp"

#include <cstring>
#include <utility>

#include <openssl/sha.h>

namespace weir::policy {

namespace {

constexpr std::string_view kIdBegin = "sha256:";
constexpr std::size_t kIdDigits = 16;  // enough to distinguish keys

}  // namespace

std::size_t ApiKeys::Prefix::operator()(const Sha256& d) const noexcept {
  std::size_t word = 0;
  std::memcpy(&word, d.data(), sizeof word);
  return word;
}

bool ApiKeys::add(const Sha256& digest, ApiKeyOwner owner) {
  return owners_.emplace(digest, std::move(owner)).second;
}

void ApiKeys::set(const Sha256& digest, ApiKeyOwner owner) {
  owners_.insert_or_assign(digest, std::move(owner));
}

bool ApiKeys::remove(const Sha256& digest) {
  return owners_.erase(digest) != 0;
}

const ApiKeyOwner* ApiKeys::find(std::string_view api_key) const {
  const auto found = owners_.find(digest(api_key));
  return found == owners_.end() ? nullptr : &found->second;
}

ApiKeys::Sha256 ApiKeys::digest(std::string_view api_key) {
  Sha256 out;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, api_key.data(), api_key.size());
  SHA256_Final(out.data(), &context);
  return out;
}

std::optional<ApiKeys::Sha256> ApiKeys::parse_digest(std::string_view hex) {
  Sha256 digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  const auto nibble = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = nibble(hex[2 * i]);
    const int low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

std::string ApiKeys::hex_of(const Sha256& digest) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const auto octet : digest) {
    text += kHex[octet >> 4];
    text += kHex[octet & 15];
  }
  return text;
}

std::string ApiKeys::id_of(const Sha256& digest) {
  return std::string(kIdBegin) + hex_of(digest).substr(0, kIdDigits);
}

bool ApiKeys::is_id(std::string_view text) noexcept {
  return text.size() == kIdBegin.size() + kIdDigits && text.starts_with(kIdBegin) &&
         text.find_first_not_of("0123456789abcdef", kIdBegin.size()) == std::string_view::npos;
}

}  // namespace weir::policy
