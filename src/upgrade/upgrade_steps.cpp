#include "weir/upgrade/upgrade_steps.hpp"

namespace weir::upgrade {

UpgradeStep step(UpgradeStage stage, UpgradeEvent event) noexcept {
  using enum UpgradeStage;
  using Event = UpgradeEvent;
  using Act = UpgradeAct;
  if (stage == Idle && event == Event::Begun) return {Starting, Act::Start};
  if (stage == Starting && event == Event::Ready) return {Pausing, Act::Pause};
  if (stage == Pausing && event == Event::Paused) return {Restoring, Act::SendState};
  if (stage == Restoring && event == Event::Restored) return {Opening, Act::LetOpen};
  if (stage == Opening && event == Event::Serving) return {Idle, Act::HandOver};
  // Ignores events that may belong to an earlier upgrade, such as a Paused that a worker reports late. Also
  // ignores a second request for an upgrade.
  if (stage == Idle || event == Event::Paused || event == Event::Begun) return {stage, Act::None};
  return {Idle, stage == Starting ? Act::GiveUp : Act::GiveUpAndResume};
}

}  // namespace weir::upgrade
