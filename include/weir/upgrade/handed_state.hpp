// Hands the states of all keys to the new process. The states are a snapshot in a memory file
// (memfd_create(2)), whose descriptor is sent to the new process.
#pragma once

#include "weir/base/result.hpp"
#include "weir/limit/snapshot.hpp"
#include "weir/net/owned_descriptor.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::upgrade {

// Returns a text such as "3 keys; 1 belonged to a removed or changed rule; …".
[[nodiscard]] std::string kept_in_words(std::uint64_t keys, std::uint64_t changed, std::uint64_t left_out);

struct HandedState {
  net::OwnedDescriptor file;
  std::uint64_t keys = 0;
  std::vector<std::string> held;  // lines about held permits (permit_changes.hpp) and changed servers
};

// Writes the states of all keys to a memory file. REQUIRES: no other thread charges keys during the call, and
// the table's keys belong to `rules`.
[[nodiscard]] base::Result<HandedState> write_state(const limit::KeyTable& table,
                                                    const limit::Snapshot& snapshot,
                                                    std::span<const limit::SavedRule> rules);
// Reads the states from the file into the table. After an error, the table may contain a part of the keys.
[[nodiscard]] base::Result<limit::Restored> read_state(int file, std::span<const limit::SavedRule> rules,
                                                       const limit::RestoreAt& at, limit::KeyTable& table,
                                                       const limit::Adopt& adopt = {});

}  // namespace weir::upgrade
