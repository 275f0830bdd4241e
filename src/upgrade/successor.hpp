// The process that is to take over, as its parent sees it: this binary again, from the path that it was
// started by and with the same arguments.
#pragma once

#include "weir/base/result.hpp"

#include <string>

#include <sys/types.h>

namespace weir::app {

// Starts it with `channel` as the descriptor that Takeover::kVariable names, no signal held back, and nobody
// else's watchdog. Blocks until it runs, or could not.
[[nodiscard]] base::Result<pid_t> start_successor(int channel);

// Whether it has, by itself. It stays there to be asked how.
[[nodiscard]] bool has_ended(pid_t successor) noexcept;

// Ends it if it has not ended yet, and waits for that. How it ended, in words: "it ended with status 2".
[[nodiscard]] std::string end_successor(pid_t successor);

}  // namespace weir::app
