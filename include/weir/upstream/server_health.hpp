// Decides from a server's answers whether it gets requests. Plain values; time and randomness are arguments.
//
//   serves ──── enough failures ───► out, each time twice as long ──── time over ──► one request may try it
//     ▲                                  ▲                                                    │
//     │                                  └───────────────────── it fails ─────────────────────┤
//     └──── little by little (slow start) ◄──────────────────── it answers ───────────────────┘
#pragma once

#include "weir/base/time.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <cstdint>

namespace weir::upstream {

class ServerHealth {
 public:
  // OutAgain: a request tried a server that is out and failed, so the server is out for longer. StillDown:
  // another probe of a server that is down failed.
  enum class Change : std::uint8_t { None, Out, OutAgain, Down, StillDown, Back };

  // The functions below return what changed. `random`: any 64 bits.
  //
  // Notes that no connection could be opened. One such failure ejects the server. While the server is out, a
  // failure counts only in a trial, or after the server's time is over.
  Change unreachable(const Ejection& settings, base::TimePoint now, std::uint64_t random) noexcept;
  // Notes a failed request: no answer, no HTTP, or an answer that broke off. The server is ejected after
  // several in a row. If the server is out, one failure is enough: that of the trial, or of any request sent
  // after its time was over. (If no server serves, all servers get requests.) Requests sent earlier prove
  // nothing.
  Change failed(const Ejection& settings, base::TimePoint sent, base::TimePoint now,
                std::uint64_t random) noexcept;
  // Notes that the server answered, with any status. The answer need not be complete if weir stopped reading
  // it. An answer to a request sent before the ejection does not readmit the server.
  Change answered(base::TimePoint sent, base::TimePoint now) noexcept;

  // Notes a probe. Enough faults in a row put the server down. Enough good answers in a row readmit it, also
  // if requests ejected it.
  Change probed(const HealthCheck& check, bool good, base::TimePoint now) noexcept;

  // Notes that the server's name has no known address. The server is down until moved().
  Change absent() noexcept;

  // Notes that the name has other addresses. `anew`: none of the old addresses remains, so it is another
  // machine, which serves as if readmitted. If some old addresses remain, a server that is out may be tried
  // at once.
  Change moved(bool anew, base::TimePoint now) noexcept;

  // Returns true if the server's time is over and no other request tries it. The caller may then try the
  // server, and should report the result. Without a report, another request may try it after the same time,
  // the next after twice that time, and so on, as if the trial had failed. `owed`: the client has not sent
  // all of its body, and may never send it. A trial by such a request prevents only trials by other such
  // requests, for as long as the server was out.
  [[nodiscard]] bool begin_trial(const Ejection& settings, base::TimePoint now, bool owed = false) noexcept;

  // Returns until when the server is out or, during a trial, until when no other request may try the server.
  // The epoch: the server is in service.
  [[nodiscard]] base::TimePoint out_until() const noexcept { return out_until_; }
  // Returns the time from which on a request that cannot be sent again may also try the server. If no
  // connection could be opened, it is out_until(), because a failed connect loses nothing. For a server that
  // accepted requests and did not answer, it is `most` later. Until then, only requests that can be sent to
  // another server may try it.
  [[nodiscard]] base::TimePoint open_to_all_from(const Ejection& settings) const noexcept {
    return silent_ && !down() ? out_until_ + settings.most : out_until_;
  }
  // Returns since when the server serves again; the epoch: it was never out.
  [[nodiscard]] base::TimePoint back_since() const noexcept { return back_since_; }
  // Returns true if answered() would change anything.
  [[nodiscard]] bool suspect() const noexcept { return failures_ != 0 || (out() && !down()); }
  // Returns how often the server was ejected, including failed trials.
  [[nodiscard]] std::uint64_t ejections() const noexcept { return ejections_; }

 private:
  enum class Trial : std::uint8_t {
    None,
    Owed,
    Whole
  };  // the kind of request that tries the server; see begin_trial()

  static constexpr base::TimePoint kServes{};
  static constexpr base::TimePoint kDown = base::TimePoint::max();

  [[nodiscard]] bool out() const noexcept { return out_until_ != kServes; }
  [[nodiscard]] bool down() const noexcept { return out_until_ == kDown; }
  Change come_back(base::TimePoint now) noexcept;
  Change put_out(const Ejection& settings, base::TimePoint now, std::uint64_t random) noexcept;

  unsigned failures_ = 0;  // in a row, while it serves
  Trial trial_ = Trial::None;
  bool silent_ = false;            // out because requests had no answer
  base::TimePoint out_since_{};    // time of the ejection or of the last failed trial
  base::TimePoint trial_since_{};  // start of the first trial without a reported result
  base::TimePoint owed_from_{};    // from when on the next request with an incomplete body may try
  unsigned good_ = 0;              // good probes in a row since the ejection; `bad_`: failed probes in a row
  unsigned bad_ = 0;
  base::TimePoint out_until_ = kServes;
  base::TimePoint back_since_{};
  base::Duration longest_{0};  // the last ejection time, before the random reduction
  std::uint64_t ejections_ = 0;
};

// Returns the weight of a server in units of 1/kFullWeight. The server serves again since `back_since` (the
// epoch: it was never out). The weight is a tenth at first and all of it after the slow start.
inline constexpr std::uint32_t kFullWeight = 256;
[[nodiscard]] std::uint32_t weight_at(std::uint32_t weight, base::Duration slow_start,
                                      base::TimePoint back_since, base::TimePoint now) noexcept;

}  // namespace weir::upstream
