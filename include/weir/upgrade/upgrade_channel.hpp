// Messages between a running weir and the new process that takes over. Each message is a word, lines and
// descriptors on a pair of sockets (SOCK_SEQPACKET).
//
// The running weir sends:
//
// - hello: the protocol version, the clock, the keys of clients' names, and counters
// - listener: an address as configured, with sockets that listen there
// - admin: the same for the admin listener
// - inherited: ends the inherited sockets
// - held: permits of concurrency limits (permit_changes.hpp), in one or more messages; after "over", each
// change
// - state: a file in memory with the snapshot
// - open: asks to accept connections
// - over: the service manager knows the new main process; states of alerts
//
// The new process sends:
//
// - ready: it can take over
// - restored: the number of keys that it restored, lost because their rules changed, and lost for lack of
// room
// - serving: it accepts connections; names of its alerts
// - failed: why it cannot take over
#pragma once

#include "weir/net/owned_descriptor.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::upgrade {

struct UpgradeMessage {
  std::string word;
  std::vector<std::string> lines;
  std::vector<net::OwnedDescriptor> descriptors;
  bool cut = false;  // incomplete: this process had no descriptors left, or the message was too long
};

// The most descriptors in a message. Linux allows 253.
inline constexpr std::size_t kMostDescriptors = 128;

// Returns two ends, which are closed on exec; nullopt if no file descriptor is left.
[[nodiscard]] std::optional<std::pair<net::OwnedDescriptor, net::OwnedDescriptor>> upgrade_channel();

// Sends a message. Waits up to a second for room. Only the last of `lines` may contain a line break; it then
// arrives as several lines. Returns false if nobody reads the other end. REQUIRES at most kMostDescriptors.
[[nodiscard]] bool send_message(int channel, std::string_view word,
                                const std::vector<std::string>& lines = {},
                                const std::vector<int>& descriptors = {}) noexcept;

enum class Arrival : std::uint8_t { Message, Nothing, End };
// Receives a message. With `wait`, blocks until there is one; otherwise returns Nothing if there is none.
[[nodiscard]] Arrival receive_message(int channel, bool wait, UpgradeMessage& message);

}  // namespace weir::upgrade
