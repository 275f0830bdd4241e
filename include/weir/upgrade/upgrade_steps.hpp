// The order of steps in which a running weir hands over to a new process. Pure: takes an event and returns an
// action.
//
//   Idle ─Begun→ Starting ─Ready→ Pausing ─Paused→ Restoring ─Restored→ Opening ─Serving→ Idle (handed over)
//
// From Pausing on, the running weir decides no requests, so that the counters can move. If a step before
// Serving fails, it ends the new process first and then resumes. Two processes never decide with the same
// counters.
#pragma once

#include <cstdint>

namespace weir::upgrade {

enum class UpgradeStage : std::uint8_t {
  Idle,
  Starting,   // the new process reads its configuration and builds what it needs
  Pausing,    // workers stop deciding
  Restoring,  // the new process reads the states
  Opening,    // the new process starts to accept connections
};

enum class UpgradeEvent : std::uint8_t {
  Begun,
  Ready,     // the new process can take over
  Paused,    // no worker decides requests
  Restored,  // the new process has the states
  Serving,
  Failed,  // the new process failed, ended, was late or sent an unexpected message; or weir stops
};

enum class UpgradeAct : std::uint8_t {
  None,
  Start,
  Pause,
  SendState,
  LetOpen,
  HandOver,
  GiveUp,           // ends the new process
  GiveUpAndResume,  // the same, and decides requests again
};

struct UpgradeStep {
  UpgradeStage next = UpgradeStage::Idle;
  UpgradeAct act = UpgradeAct::None;
  friend bool operator==(const UpgradeStep&, const UpgradeStep&) = default;
};

[[nodiscard]] UpgradeStep step(UpgradeStage stage, UpgradeEvent event) noexcept;

}  // namespace weir::upgrade
