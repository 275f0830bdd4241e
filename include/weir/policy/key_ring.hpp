// The API keys that are known, with what each says of its holder. Immutable; only digests of the keys are
// kept.
#pragma once

#include "weir/base/siphash.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weir::policy {

struct KeyHolder {
  std::string user, org, tier, service;  // empty: not said
};

class KeyRing {
 public:
  using Sha256 = std::array<std::uint8_t, 32>;

  // False when that key is on the ring already.
  bool add(const Sha256& digest, KeyHolder holder);

  // Null when unknown. Costs one SHA-256 of the key.
  [[nodiscard]] const KeyHolder* find(std::string_view api_key) const;

  [[nodiscard]] std::size_t size() const noexcept { return holders_.size(); }
  [[nodiscard]] static Sha256 digest(std::string_view api_key);

 private:
  struct Prefix {  // SHA-256 output is uniform: its first word is hash enough
    std::size_t operator()(const Sha256& d) const noexcept;
  };
  std::unordered_map<Sha256, KeyHolder, Prefix> holders_;
};

}  // namespace weir::policy
