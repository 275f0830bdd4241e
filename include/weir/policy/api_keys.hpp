// The known API keys, and for each key its owner: the user, org, tier and service that own the key.
// Immutable; only digests of the keys are stored.
#pragma once

#include "weir/base/siphash.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weir::policy {

struct ApiKeyOwner {
  std::string user, org, tier, service;  // each is empty if unknown
  friend bool operator==(const ApiKeyOwner&, const ApiKeyOwner&) = default;
};

// The changes to make to an ApiKeyOwner. A member that is nullopt leaves the owner's value as it is.
struct ApiKeyOwnerChange {
  std::optional<std::string> user{}, org{}, tier{}, service{};
  // Returns the owner after the change.
  [[nodiscard]] ApiKeyOwner applied_to(const ApiKeyOwner& owner) const {
    return {user.value_or(owner.user), org.value_or(owner.org), tier.value_or(owner.tier),
            service.value_or(owner.service)};
  }
};

class ApiKeys {
 public:
  using Sha256 = std::array<std::uint8_t, 32>;

  // Adds a key. Returns false if the key was added before.
  bool add(const Sha256& digest, ApiKeyOwner owner);

  // Adds a key, or changes the owner of a known key.
  void set(const Sha256& digest, ApiKeyOwner owner);
  // Returns false if the key is unknown.
  bool remove(const Sha256& digest);

  // Returns the owner of a key, or null if the key is unknown. Computes one SHA-256 of the key.
  [[nodiscard]] const ApiKeyOwner* find(std::string_view api_key) const;

  // Calls `see` with the digest and the owner of each key, in any order.
  template <class See>
  void for_each(See see) const {
    for (const auto& [digest, owner] : owners_) see(digest, owner);
  }

  [[nodiscard]] std::size_t size() const noexcept { return owners_.size(); }
  [[nodiscard]] static Sha256 digest(std::string_view api_key);
  // Parses 64 hexadecimal digits; nullopt for any other text.
  [[nodiscard]] static std::optional<Sha256> parse_digest(std::string_view hex);
  // Returns 64 hexadecimal digits.
  [[nodiscard]] static std::string hex_of(const Sha256& digest);
  // Returns the name of a key that weir shows instead of the key: "sha256:" and the first 16 digits.
  [[nodiscard]] static std::string id_of(const Sha256& digest);
  // Returns true if the text has the form of the result of id_of(). Another text may be an API key, so weir
  // must neither log it nor send it back.
  [[nodiscard]] static bool is_id(std::string_view text) noexcept;
  friend bool operator==(const ApiKeys&, const ApiKeys&) = default;

 private:
  struct Prefix {  // the first word of a SHA-256 can serve as a hash, because SHA-256 output is uniform
    std::size_t operator()(const Sha256& d) const noexcept;
  };
  std::unordered_map<Sha256, ApiKeyOwner, Prefix> owners_;
};

}  // namespace weir::policy
