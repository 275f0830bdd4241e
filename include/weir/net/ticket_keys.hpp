// The keys under which a listener's session tickets are sealed (RFC 5077 §4, RFC 8446 §4.6.1). Whoever learns
// one can read the sessions of its time, so each is used for one period, opens tickets for one more, and is
// then wiped.
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

// Any thread may call: all workers, and the contexts of all certificates of a listener, share one.
class TicketKeys {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // `period` > 0.
  explicit TicketKeys(std::chrono::steady_clock::duration period) : period_(period) {}
  ~TicketKeys();
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;

  // The key of tickets issued at `now`; nullopt where the system gives no random numbers.
  [[nodiscard]] std::optional<TicketKey> current(Instant now);

  struct Found {
    TicketKey key;
    bool current = false;  // else the client should have a new ticket
  };
  // The key that a ticket names, while it is good.
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
