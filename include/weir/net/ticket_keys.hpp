// The keys that seal a listener's session tickets (RFC 5077 §4, RFC 8446 §4.6.1). A leaked key reveals the
// sessions whose tickets it sealed. So each key seals tickets for one period, opens tickets for one more, and
// is then wiped.
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

// Thread-safe: shared by all workers and by the contexts of all certificates of a listener.
class TicketKeys {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // `period` > 0.
  explicit TicketKeys(std::chrono::steady_clock::duration period) : period_(period) {}
  ~TicketKeys();
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;

  // Returns the key for tickets issued at `now`; nullopt if the system gives no random numbers.
  [[nodiscard]] std::optional<TicketKey> current(Instant now);

  struct Found {
    TicketKey key;
    bool current = false;  // false: the client should get a new ticket
  };
  // Returns the key that a ticket names; nullopt if it is unknown or too old.
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
