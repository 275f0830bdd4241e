// How limits stand, on its way to the process that takes over: a snapshot in a file that is in memory alone,
// whose descriptor goes over.
#pragma once

#include "weir/base/result.hpp"
#include "weir/limit/snapshot.hpp"
#include "weir/net/owned_descriptor.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::app {

// "3 keys; 1 was of a rule that is gone or counts otherwise; …": of how many keys the state went over.
[[nodiscard]] std::string kept_in_words(std::uint64_t keys, std::uint64_t changed, std::uint64_t left_out);

struct HandedState {
  net::OwnedDescriptor file;
  std::uint64_t keys = 0;
  std::vector<std::string> held;  // lines of held_news.hpp
};

// REQUIRES that nobody charges meanwhile, and that the keys were charged by `rules`.
[[nodiscard]] base::Result<HandedState> write_state(const limit::KeyTable& table,
                                                    const limit::Snapshot& snapshot,
                                                    std::span<const limit::SavedRule> rules);
// An error: it is not whole, and the table as it was, or has a part.
[[nodiscard]] base::Result<limit::Restored> read_state(int file, std::span<const limit::SavedRule> rules,
                                                       const limit::RestoreAt& at, limit::KeyTable& table,
                                                       const limit::Adopt& adopt = {});

}  // namespace weir::app
