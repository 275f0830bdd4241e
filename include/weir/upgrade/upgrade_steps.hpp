// The order of steps in which the old process hands over to the new one. Pure: each event gives an action.
//
//   Idle ─Begun→ Starting ─Ready→ Pausing ─Paused→ Restoring ─Restored→ Opening ─Serving→ Idle (handed over)
//
// From Pausing on, the old process decides no requests, so that the new process can take over the counters.
// If a step before Serving fails, the old process first ends the new one and then decides requests again. So
// two processes never decide with the same counters.
#pragma once

#include <cstdint>

namespace weir::upgrade {

enum class UpgradeStage : std::uint8_t {
  Idle,
  Starting,   // the new process reads its configuration and starts its workers
  Pausing,    // workers stop deciding requests
  Restoring,  // the new process reads the states of keys
  Opening,    // the new process begins to accept connections
};

enum class UpgradeEvent : std::uint8_t {
  Begun,
  Ready,     // the new process can take over
  Paused,    // no worker decides requests
  Restored,  // the new process has the states of keys
  Serving,
  Failed,  // the new process failed, ended, was late or sent an unexpected message; or this process stops
};

enum class UpgradeAction : std::uint8_t {
  None,
  Start,
  Pause,
  SendState,
  LetOpen,
  HandOver,
  GiveUp,           // ends the new process
  GiveUpAndResume,  // ends the new process, and lets this process decide requests again
};

struct UpgradeStep {
  UpgradeStage next = UpgradeStage::Idle;
  UpgradeAction act = UpgradeAction::None;
  friend bool operator==(const UpgradeStep&, const UpgradeStep&) = default;
};

[[nodiscard]] UpgradeStep step(UpgradeStage stage, UpgradeEvent event) noexcept;

}  // namespace weir::upgrade
