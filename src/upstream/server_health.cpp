#include "weir/upstream/server_health.hpp"

#include <algorithm>

namespace weir::upstream {

namespace {

// Returns a random time between half of `time` and `time`, so that servers ejected together are not all
// readmitted together.
base::Duration shortened(base::Duration time, std::uint64_t random) noexcept {
  const auto half = static_cast<std::uint64_t>(time.count() / 2);
  return time - base::Duration{static_cast<base::Duration::rep>(random % (half + 1))};
}

}  // namespace

// During the ejection time, a failed connect counts only while a trial is under way. Without a trial, the
// failure proves nothing new.
ServerHealth::Change ServerHealth::unreachable(const Ejection& settings, base::TimePoint now,
                                               std::uint64_t random) noexcept {
  if (out() && trial_ == Trial::None && now < ejected_until_) return Change::None;
  silent_ = false;
  return eject(settings, now, random);
}

ServerHealth::Change ServerHealth::failed(const Ejection& settings, base::TimePoint sent, base::TimePoint now,
                                          std::uint64_t random) noexcept {
  // While the server is ejected, a failure counts only if its request was sent after the trial began. If no
  // trial has begun, it counts only if its request was sent after the ejection time. (weir sends requests to
  // ejected servers while all servers are ejected.)
  const auto tried_from = trial_ == Trial::None ? ejected_until_ : trial_since_;
  const bool enough = out() ? sent >= tried_from : ++failures_ >= settings.failures;
  if (!enough) return Change::None;
  silent_ = true;
  return eject(settings, now, random);
}

ServerHealth::Change ServerHealth::eject(const Ejection& settings, base::TimePoint now,
                                         std::uint64_t random) noexcept {
  const bool was_out = out();
  const bool again = was_out || (last_length_ != base::Duration{0} && now < readmitted_at_ + settings.most);
  last_length_ = again ? std::min(settings.most, 2 * last_length_) : std::min(settings.most, settings.least);
  ejected_until_ = now + shortened(last_length_, random);
  ejected_at_ = now;
  failures_ = 0;
  good_ = 0;
  trial_ = Trial::None;
  ++ejections_;
  return was_out ? Change::OutAgain : Change::Out;
}

ServerHealth::Change ServerHealth::answered(base::TimePoint sent, base::TimePoint now) noexcept {
  failures_ = 0;
  return out() && !down() && sent >= ejected_at_ ? readmit(now) : Change::None;
}

ServerHealth::Change ServerHealth::readmit(base::TimePoint now) noexcept {
  ejected_until_ = kServes;
  readmitted_at_ = now;
  failures_ = 0;
  trial_ = Trial::None;
  silent_ = false;
  return Change::Back;
}

ServerHealth::Change ServerHealth::probed(const HealthCheck& check, bool good, base::TimePoint now) noexcept {
  good_ = good ? good_ + 1 : 0;
  bad_ = good ? 0 : bad_ + 1;
  if (good) return out() && good_ >= check.healthy_after ? readmit(now) : Change::None;
  if (down()) return Change::StillDown;
  if (bad_ < check.unhealthy_after) return Change::None;
  ejected_until_ = kDown;
  trial_ = Trial::None;
  ++ejections_;
  return Change::Down;
}

ServerHealth::Change ServerHealth::absent() noexcept {
  ejected_until_ = kDown;
  trial_ = Trial::None;
  return Change::Down;
}

ServerHealth::Change ServerHealth::moved(bool anew, base::TimePoint now) noexcept {
  if (anew) {
    const bool was_out = out();
    last_length_ = base::Duration{0};
    good_ = bad_ = 0;
    readmit(now);
    return was_out ? Change::Back : Change::None;
  }
  if (out() && !down()) ejected_until_ = std::min(ejected_until_, now);
  trial_ = Trial::None;
  silent_ = false;
  return Change::None;
}

bool ServerHealth::begin_trial(const Ejection& settings, base::TimePoint now, bool owed) noexcept {
  if (!out() || now < ejected_until_ || (owed && now < next_trial_with_body_)) return false;
  if (trial_ == Trial::None) trial_since_ = now;
  if (owed) {
    if (trial_ == Trial::None) trial_ = Trial::Owed;
    next_trial_with_body_ = now + last_length_;
    return true;
  }
  if (trial_ == Trial::Whole) last_length_ = std::min(settings.most, 2 * last_length_);
  trial_ = Trial::Whole;
  ejected_until_ = now + last_length_;
  return true;
}

std::uint32_t weight_at(std::uint32_t weight, base::Duration slow_start, base::TimePoint readmitted_at,
                        base::TimePoint now) noexcept {
  const auto full = weight * kFullWeight;
  const auto gone = now - readmitted_at;
  if (readmitted_at == base::TimePoint{} || gone >= slow_start) return full;
  const auto share = static_cast<double>(std::max(base::Duration{0}, gone).count()) /
                     static_cast<double>(slow_start.count());
  return std::max({std::uint32_t{1}, full / 10, static_cast<std::uint32_t>(full * share)});
}

}  // namespace weir::upstream
