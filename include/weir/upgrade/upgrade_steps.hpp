// The order in which a running weir gives place to a new process of its binary, as the running one sees it.
// Pure: what happened goes in, what is to be done comes out.
//
//   Idle ─Begun→ Starting ─Ready→ Pausing ─Paused→ Restoring ─Restored→ Opening ─Serving→ Idle (handed over)
//
// From Pausing on nobody decides anything here, so that what limits have counted can move. Whatever fails
// before Serving ends the new process first, and then this one goes on: never do two decide by one count.
#pragma once

#include <cstdint>

namespace weir::app {

enum class UpgradeStage : std::uint8_t {
  Idle,
  Starting,   // the new process reads its configuration and builds what it needs
  Pausing,    // workers are told to take nothing new
  Restoring,  // the new process reads how limits stand
  Opening,    // it begins to take connections
};

enum class UpgradeEvent : std::uint8_t {
  Begun,
  Ready,     // the new process could take over
  Paused,    // no worker decides any more
  Restored,  // the new process has the state
  Serving,
  Failed,  // it said so, it ended, it was late, it said what was not expected, or weir stops
};

enum class UpgradeAct : std::uint8_t {
  None,
  Start,
  Pause,
  SendState,
  LetOpen,
  HandOver,
  GiveUp,           // end the new process
  GiveUpAndResume,  // likewise, and decide again
};

struct UpgradeStep {
  UpgradeStage next = UpgradeStage::Idle;
  UpgradeAct act = UpgradeAct::None;
  friend bool operator==(const UpgradeStep&, const UpgradeStep&) = default;
};

[[nodiscard]] UpgradeStep step(UpgradeStage stage, UpgradeEvent event) noexcept;

}  // namespace weir::app
