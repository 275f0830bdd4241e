#include "weir/net/ticket_keys.hpp"

#include <algorithm>

#include <openssl/crypto.h>
#include <openssl/rand.h>

namespace weir::net {

namespace {

template <class Aged>
void wipe(std::optional<Aged>& aged) noexcept {
  if (aged) OPENSSL_cleanse(&aged->key, sizeof aged->key);
  aged.reset();
}

}  // namespace

TicketKeys::~TicketKeys() {
  wipe(current_);
  wipe(previous_);
}

void TicketKeys::retire(Instant now) noexcept {
  if (current_ && now - current_->since >= period_) {
    wipe(previous_);
    previous_ = current_;
    wipe(current_);
  }
  if (previous_ && now - previous_->since >= 2 * period_) wipe(previous_);
}

std::optional<TicketKey> TicketKeys::current(Instant now) {
  const std::lock_guard lock(mutex_);
  retire(now);
  if (current_) return current_->key;
  TicketKey key;
  if (RAND_bytes(key.name.data(), static_cast<int>(key.name.size())) != 1 ||
      RAND_priv_bytes(key.cipher.data(), static_cast<int>(key.cipher.size())) != 1 ||
      RAND_priv_bytes(key.mac.data(), static_cast<int>(key.mac.size())) != 1)
    return std::nullopt;
  current_ = Aged{key, now};
  return key;
}

std::optional<TicketKeys::Found> TicketKeys::find(std::span<const unsigned char, TicketKey::kNameSize> name,
                                                  Instant now) {
  const std::lock_guard lock(mutex_);
  retire(now);
  for (const auto* aged : {&current_, &previous_})
    if (*aged && std::equal(name.begin(), name.end(), (*aged)->key.name.begin()))
      return Found{(*aged)->key, aged == &current_};
  return std::nullopt;
}

}  // namespace weir::net
