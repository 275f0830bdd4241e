#include "weir/upgrade/upgrade_steps.hpp"

namespace weir::upgrade {

UpgradeStep step(UpgradeStage stage, UpgradeEvent event) noexcept {
  using enum UpgradeStage;
  using Event = UpgradeEvent;
  using Action = UpgradeAction;
  if (stage == Idle && event == Event::Begun) return {Starting, Action::Start};
  if (stage == Starting && event == Event::Ready) return {Pausing, Action::Pause};
  if (stage == Pausing && event == Event::Paused) return {Restoring, Action::SendState};
  if (stage == Restoring && event == Event::Restored) return {Opening, Action::LetOpen};
  if (stage == Opening && event == Event::Serving) return {Idle, Action::HandOver};
  // Ignores events that may belong to an earlier upgrade, such as a Paused that a worker reports late. Also
  // ignores a second request for an upgrade.
  if (stage == Idle || event == Event::Paused || event == Event::Begun) return {stage, Action::None};
  return {Idle, stage == Starting ? Action::GiveUp : Action::GiveUpAndResume};
}

}  // namespace weir::upgrade
