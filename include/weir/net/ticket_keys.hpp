// The keys that encrypt a listener's TLS session tickets (RFC 5077 §4, RFC 8446 §4.6.1). A leaked key reveals
// the sessions whose tickets it encrypted. So each key encrypts tickets for one period, decrypts tickets for
// one more period, and is then wiped from memory.
#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <span>

namespace weir::net {

struct TicketKey {
  static constexpr std::size_t kNameSize = 16;
  std::array<unsigned char, kNameSize> name{};
  std::array<unsigned char, 32> cipher{};  // AES-256-CBC
  std::array<unsigned char, 32> mac{};     // HMAC-SHA-256
};

// Thread-safe. All workers and the contexts of all certificates of a listener share one object.
class TicketKeys {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // REQUIRES `period` > 0.
  explicit TicketKeys(std::chrono::steady_clock::duration period) : period_(period) {}
  ~TicketKeys();
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;

  // Returns the key that encrypts tickets at `now`; nullopt if the system gives no random numbers for a new
  // key.
  [[nodiscard]] std::optional<TicketKey> current(Instant now);

  struct Found {
    TicketKey key;
    bool current = false;  // false: the key is an older one, and the client should get a new ticket
  };
  // Returns the key whose name is in a ticket; nullopt if the key is unknown or too old.
  [[nodiscard]] std::optional<Found> find(std::span<const unsigned char, TicketKey::kNameSize> name,
                                          Instant now);

 private:
  struct Aged {
    TicketKey key;
    Instant since;
  };
  void retire(Instant now) noexcept;

  const std::chrono::steady_clock::duration period_;
  std::mutex mutex_;
  std::optional<Aged> current_;
  std::optional<Aged> previous_;
};

}  // namespace weir::net
