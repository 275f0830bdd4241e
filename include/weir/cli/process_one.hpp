// Signals of a weir that is process 1 of a container.
#pragma once

namespace weir::cli {

// Does nothing unless this is process 1 of its PID namespace, which the kernel treats in two special ways.
//
// The kernel drops a signal to process 1 that has no handler, even SIGTERM. After this call, SIGTERM and
// SIGINT end the process at once, with status 128 + signal. So a SIGTERM during the start is not lost. weir
// run replaces these handlers once it has looked up names.
//
// The kernel makes process 1 the parent of orphans. After this call, the kernel removes orphans that end,
// because SIGCHLD is ignored. This harms no child of weir: as process 1, weir refuses upgrades, and starts no
// other process.
//
// Must be called before any other thread starts.
void prepare_as_process_one();

}  // namespace weir::cli
