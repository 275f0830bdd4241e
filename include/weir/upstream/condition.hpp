// Whether a server gets requests, as far as its answers tell: plain values, time and randomness are
// arguments.
//
//   serves ──── enough failures ───► out for a time that doubles ──── the time is over ───► one request may
//   try
//     ▲                                     ▲                                                     │
//     │                                     └───────────────────── it fails ──────────────────────┤
//     └──── little by little (slow start) ◄─────────────────────── it answers ───────────────────-┘
#pragma once

#include "weir/base/time.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <cstdint>

namespace weir::upstream {

class Condition {
 public:
  // OutAgain: a request that tried a server which is out failed, so it is out for longer. StillDown: another
  // probe of a server which is down failed.
  enum class Change : std::uint8_t { None, Out, OutAgain, Down, StillDown, Back };

  // Each says what changed. `random`: any 64 bits.
  //
  // A connection to it could not be opened: that is enough. Of one that is out it counts again once its time
  // is over, or in a trial.
  Change unreachable(const Ejection& settings, base::TimePoint now, std::uint64_t random) noexcept;
  // It got a request and gave no answer, none that is HTTP, or one that broke off: enough when it happens
  // several times in a row, to the one request that was to try it, or to any that was sent once its time was
  // over: where no server serves all are asked. What was sent before says nothing of that.
  Change failed(const Ejection& settings, base::TimePoint sent, base::TimePoint now,
                std::uint64_t random) noexcept;
  // It answered a request, whatever the status, as far as the answer was wanted. One that was sent before it
  // went out brings it not back.
  Change answered(base::TimePoint sent, base::TimePoint now) noexcept;

  // It was asked how it is. So many faults in a row and it is down: out until as many good answers as are
  // asked for have come in a row. These bring back one that is out because of requests, too.
  Change probed(const HealthCheck& check, bool good, base::TimePoint now) noexcept;

  // Its name stands for no address that is known: it is down until moved().
  Change absent() noexcept;

  // Its name stands for other addresses. `anew`: for none of those that it had, so it is another machine: it
  // serves, as one that is back does. Else it may have one that works: where it is out it may be tried at
  // once.
  Change moved(bool anew, base::TimePoint now) noexcept;

  // Its time is over and nobody else tries it: whoever is told so may, and shall say what came of it. Should
  // nobody, another may after as long again, the next after twice as long, and so on as if it had failed.
  // `owed`: it is a request whose client still owes its body, and may keep it back. So it holds off none but
  // its like, for as long as the server was out.
  [[nodiscard]] bool begin_trial(const Ejection& settings, base::TimePoint now, bool owed = false) noexcept;

  // Until when it is out, or nobody else may try it; the epoch: it serves.
  [[nodiscard]] base::TimePoint out_until() const noexcept { return out_until_; }
  // From when on a request that cannot be sent again may try it as well. Where no connection could be opened
  // that is out_until(): it loses nothing if none can be now. A server that had requests and gave no answer
  // is for `most` longer left to those that another server can have after it.
  [[nodiscard]] base::TimePoint open_to_all_from(const Ejection& settings) const noexcept {
    return silent_ && !down() ? out_until_ + settings.most : out_until_;
  }
  // Since when it serves again; the epoch: it was never out.
  [[nodiscard]] base::TimePoint back_since() const noexcept { return back_since_; }
  // Whether answered() would change anything.
  [[nodiscard]] bool suspect() const noexcept { return failures_ != 0 || (out() && !down()); }
  // Returns how often it was put out, by requests that tried it while it was out as well.
  [[nodiscard]] std::uint64_t ejections() const noexcept { return ejections_; }

 private:
  enum class Trial : std::uint8_t { None, Owed, Whole };  // who tries it, as begin_trial() says

  static constexpr base::TimePoint kServes{};
  static constexpr base::TimePoint kDown = base::TimePoint::max();

  [[nodiscard]] bool out() const noexcept { return out_until_ != kServes; }
  [[nodiscard]] bool down() const noexcept { return out_until_ == kDown; }
  Change come_back(base::TimePoint now) noexcept;
  Change put_out(const Ejection& settings, base::TimePoint now, std::uint64_t random) noexcept;

  unsigned failures_ = 0;  // in a row, while it serves
  Trial trial_ = Trial::None;
  bool silent_ = false;            // it is out because requests had no answer
  base::TimePoint out_since_{};    // it went out, or a trial failed
  base::TimePoint trial_since_{};  // the first began of which nobody said what came of it
  base::TimePoint owed_from_{};    // when the next may whose client owes its body
  unsigned good_ = 0;              // probes in a row, since it went out
  unsigned bad_ = 0;
  base::TimePoint out_until_ = kServes;
  base::TimePoint back_since_{};
  base::Duration longest_{0};  // the time it was out last, before chance made it shorter
  std::uint64_t ejections_ = 0;
};

// The weight of a server that serves again since `back_since` (the epoch: it was never out), in units of
// 1/kFullWeight: a tenth at first, all of it when the slow start is over.
inline constexpr std::uint32_t kFullWeight = 256;
[[nodiscard]] std::uint32_t weight_at(std::uint32_t weight, base::Duration slow_start,
                                      base::TimePoint back_since, base::TimePoint now) noexcept;

}  // namespace weir::upstream
