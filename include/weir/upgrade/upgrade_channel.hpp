// Messages between the old and the new process of an upgrade. Each message is a word, lines and file
// descriptors on a pair of sockets (SOCK_SEQPACKET).
//
// The old process sends:
//
// - hello: the protocol version, the clock, the keys for clients' names, and the counts of upgrades
// - listener: the configured address of a listener, with its sockets
// - admin: the address and the sockets of the admin listener
// - inherited: no more sockets follow
// - held: lines about held concurrency permits (permit_changes.hpp) and about servers that operators have
// changed, in one or more messages; after "over", lines about each change of permits
// - state: a memory file with the states of all keys
// - open: the new process must accept connections now
// - over: the service manager knows the new main process; the lines have the states of alerts
//
// The new process sends:
//
// - ready: the new process can take over
// - restored: how many keys were restored, were lost because their rules changed, and were lost for lack of
// room
// - serving: the new process accepts connections; the lines have the IDs of its alerts
// - failed: why the new process cannot take over
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
  bool cut = false;  // true: the message is incomplete, because it was too long or no descriptors were left
};

// The largest number of descriptors in one message. Linux allows 253.
inline constexpr std::size_t kMostDescriptors = 128;

// Returns the two ends of a channel. Both have the close-on-exec flag. Returns nullopt if no file descriptor
// is left.
[[nodiscard]] std::optional<std::pair<net::OwnedDescriptor, net::OwnedDescriptor>> upgrade_channel();

// Sends a message. If the channel is full, waits up to a second. Only the last of `lines` may contain line
// breaks; that line then arrives as several lines. Returns false if the other end is closed or if the channel
// stays full. REQUIRES at most kMostDescriptors descriptors.
[[nodiscard]] bool send_message(int channel, std::string_view word,
                                const std::vector<std::string>& lines = {},
                                const std::vector<int>& descriptors = {}) noexcept;

enum class ReceiveResult : std::uint8_t { Message, Nothing, End };
// Receives a message. If `wait` is true, blocks until a message arrives. Otherwise returns Nothing if no
// message has arrived.
[[nodiscard]] ReceiveResult receive_message(int channel, bool wait, UpgradeMessage& message);

}  // namespace weir::upgrade
