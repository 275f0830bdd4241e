// ServerHealth decides from a server's answers whether the server gets requests. Pure: time and random
// numbers are arguments. The state of the server in ServerGroup owns the object and protects it by a mutex.
//
//   serves ── enough failures ──► out, each time twice as long ── time has passed ──► one request tries it
//     ▲                                 ▲                                                  │
//     │                                 └────────────────── the request fails ─────────────┤
//     └──── little by little (slow start) ◄──────────────── the server answers ────────────┘
#pragma once

#include "weir/base/time.hpp"
#include "weir/upstream/upstream_settings.hpp"

#include <cstdint>

namespace weir::upstream {

class ServerHealth {
 public:
  // The change of a server's state:
  // * Out: the server is ejected for a time, because requests failed.
  // * OutAgain: a request tried an ejected server and failed, so the server stays ejected for longer.
  // * Down, StillDown: probes took the server down; another probe of a server that is down failed.
  // * Back: the server is readmitted.
  enum class Change : std::uint8_t { None, Out, OutAgain, Down, StillDown, Back };

  // The functions below return the change of the server's state. `random`: any 64 bits.
  //
  // Records that no connection could be opened. One failed connect ejects the server. During the ejection
  // time, a failed connect counts only while a request tries the server (a trial). Other failed connects are
  // ignored.
  Change unreachable(const Ejection& settings, base::TimePoint now, std::uint64_t random) noexcept;
  // Records a failed request: the server sent no answer, no HTTP, or an incomplete answer. Several failures
  // in a row eject the server.
  //
  // If the server is already ejected, a failure extends the ejection only if the request was sent after the
  // ejection time had passed. Requests after that time are trials (begin_trial()), or are sent because all
  // servers are ejected. The failures of older requests are ignored.
  Change failed(const Ejection& settings, base::TimePoint sent, base::TimePoint now,
                std::uint64_t random) noexcept;
  // Records that the server answered, with any status. The answer need not be complete if weir stopped
  // reading it. An answer to a request sent before the ejection does not readmit the server.
  Change answered(base::TimePoint sent, base::TimePoint now) noexcept;

  // Records the result of a probe. Enough failed probes in a row take the server down. Enough good probes in
  // a row readmit the server, even if failed requests had ejected it.
  Change probed(const HealthCheck& check, bool good, base::TimePoint now) noexcept;

  // Records that the server's name has no known address. The server is down until moved() is called.
  Change absent() noexcept;

  // Records that the server's name has other addresses. `anew` is true if none of the old addresses remains.
  // In that case the name refers to another machine, so the server is readmitted with slow start. If some old
  // addresses remain, a request may try an ejected server at once.
  Change moved(bool anew, base::TimePoint now) noexcept;

  // Returns true if the ejection time has passed and no other request tries the server. The caller may then
  // try the server (this is called a trial), and should report the result. If no result is reported, the
  // second trial may begin after the length of the ejection, the third one after twice that time, and so on.
  //
  // `owed`: true if the client has not sent the whole body, and may never send it. A trial with `owed` keeps
  // away other requests with `owed` for the length of the last ejection. It never keeps away other requests.
  [[nodiscard]] bool begin_trial(const Ejection& settings, base::TimePoint now, bool owed = false) noexcept;

  // Returns the end of the ejection. During a trial, returns the time until which no other request may try
  // the server. The epoch: the server is in service.
  [[nodiscard]] base::TimePoint ejected_until() const noexcept { return ejected_until_; }
  // Returns the time from which any request may try the server. If no connection could be opened, returns
  // ejected_until(), because a failed connect loses no request. If the server accepted requests but did not
  // answer, returns ejected_until() plus `most`. Until that time, only requests that weir can send again may
  // try the server.
  [[nodiscard]] base::TimePoint open_to_all_from(const Ejection& settings) const noexcept {
    return silent_ && !down() ? ejected_until_ + settings.most : ejected_until_;
  }
  // Returns the time of the last readmission; the epoch: the server was never readmitted.
  [[nodiscard]] base::TimePoint readmitted_at() const noexcept { return readmitted_at_; }
  // Returns true if answered() would change the server's state: if the server failed lately, or is ejected
  // without being down.
  [[nodiscard]] bool suspect() const noexcept { return failures_ != 0 || (out() && !down()); }
  // Returns the number of ejections, including failed trials.
  [[nodiscard]] std::uint64_t ejections() const noexcept { return ejections_; }

 private:
  // The kind of request in the present trial; see begin_trial().
  enum class Trial : std::uint8_t { None, Owed, Whole };

  static constexpr base::TimePoint kServes{};
  static constexpr base::TimePoint kDown = base::TimePoint::max();

  [[nodiscard]] bool out() const noexcept { return ejected_until_ != kServes; }
  [[nodiscard]] bool down() const noexcept { return ejected_until_ == kDown; }
  Change readmit(base::TimePoint now) noexcept;
  Change eject(const Ejection& settings, base::TimePoint now, std::uint64_t random) noexcept;

  unsigned failures_ = 0;  // failures in a row, while the server serves
  Trial trial_ = Trial::None;
  bool silent_ = false;            // true: the server is ejected because it did not answer requests
  base::TimePoint ejected_at_{};   // time of the ejection or of the last failed trial
  base::TimePoint trial_since_{};  // start of the first trial without a reported result
  // The time from which another request with an incomplete body may try the server.
  base::TimePoint next_trial_with_body_{};
  unsigned good_ = 0;                        // number of good probes in a row since the ejection
  unsigned bad_ = 0;                         // number of failed probes in a row
  base::TimePoint ejected_until_ = kServes;  // the end of the ejection time, or when the next trial may begin
  base::TimePoint readmitted_at_{};          // time of the last readmission
  base::Duration last_length_{0};            // the last ejection time, before the random reduction
  std::uint64_t ejections_ = 0;
};

inline constexpr std::uint32_t kFullWeight = 256;
// Returns the present weight of a server, in units of 1/kFullWeight. After a readmission, the weight is a
// tenth of `weight` at first, and all of it after `slow_start`. `readmitted_at`: the time of the last
// readmission; the epoch: the server was never readmitted.
[[nodiscard]] std::uint32_t weight_at(std::uint32_t weight, base::Duration slow_start,
                                      base::TimePoint readmitted_at, base::TimePoint now) noexcept;

}  // namespace weir::upstream
