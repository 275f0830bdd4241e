// What a running weir and the new process that takes over from it tell each other: messages over a pair of
// sockets (SOCK_SEQPACKET), a word and lines, with descriptors beside them.
//
//   running → new   hello       the protocol, the clock, the keys that names are made under, what was counted
//                   listener    an address as configured, and sockets that listen there
//                   admin       likewise
//                   inherited   that was all
//                   held        what is under way in limits of concurrency (held_news.hpp), in as many
//                               messages as it takes; after "over" whenever that changes
//                   state       a file in memory: the snapshot
//                   open        take connections
//                   over        what systemd calls the main process is the new one; alerts that it goes on
//                   with
//   new → running   ready       it could take over
//                   restored    how limits stand is known there: of how many keys it is, of how many not
//                               for their rules changed, and of how many not for want of room
//                   serving     it takes connections; which alerts it has
//                   failed      why it cannot
#pragma once

#include "weir/net/owned_descriptor.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::app {

struct UpgradeMessage {
  std::string word;
  std::vector<std::string> lines;
  std::vector<net::OwnedDescriptor> descriptors;
  bool cut = false;  // part of it did not come: this process had no descriptors left, or it was too long
};

// Most descriptors of a message; Linux takes 253.
inline constexpr std::size_t kMostDescriptors = 128;

// Two ends, closed on exec; nullopt where the system has no descriptors left.
[[nodiscard]] std::optional<std::pair<net::OwnedDescriptor, net::OwnedDescriptor>> upgrade_channel();

// Waits up to a second for room. `lines`: none but the last may hold a line break, which comes as several.
// False: nobody is there to read it, or does. REQUIRES at most kMostDescriptors.
[[nodiscard]] bool send_message(int channel, std::string_view word,
                                const std::vector<std::string>& lines = {},
                                const std::vector<int>& descriptors = {}) noexcept;

enum class Arrival : std::uint8_t { Message, Nothing, End };
// `wait`: until there is something; else Nothing where there is not.
[[nodiscard]] Arrival receive_message(int channel, bool wait, UpgradeMessage& message);

}  // namespace weir::app
