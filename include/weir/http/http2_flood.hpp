// Bounds the cheap frames of an HTTP/2 client: frames that cost weir work but do not advance any request.
// These are SETTINGS, PING, PRIORITY, WINDOW_UPDATE and empty DATA (CVE-2019-9511 to 9518), and resets
// (CVE-2023-44487, CVE-2025-8671). Pure.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/http2_session.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::http {

// At most `count` streams of a connection may be reset within `window`. Resets by the client count, and so do
// resets that weir sends because of the client's faults.
struct Http2ResetBound {
  std::uint32_t count = 100;
  base::Duration window{10'000'000};
  friend bool operator==(const Http2ResetBound&, const Http2ResetBound&) = default;
};

class Http2FloodGuard {
 public:
  explicit Http2FloodGuard(const Http2ResetBound& resets) noexcept : resets_(resets) {}

  // Counts a request, or a DATA frame of the client. Each of these permits kPerWork more cheap frames.
  void note_work() noexcept { ++work_; }
  // Counts a DATA frame that weir sends, with `octets` octets of a body. Each such frame permits kPerWork
  // more cheap frames. `cut`: true if the client's windows permitted no larger frame. The cheap frames
  // that a cut frame permits may include only one WINDOW_UPDATE for each kPerUpdate octets of the frame. If
  // more were permitted, a client could request a long answer octet by octet (CVE-2019-9511).
  void note_sent(std::size_t octets, bool cut) noexcept {
    if (!cut) return note_work();
    ++sent_;
    octets_ += octets;
  }
  // Counts a cheap frame. Returns true if the client has sent too many, so that the connection must end.
  [[nodiscard]] bool is_flood(Http2CheapFrame frame, base::TimePoint now) noexcept;

  // How many cheap frames a client may send in a time window: kFree, and kPerWork more for each request or
  // DATA frame.
  static constexpr std::uint64_t kFree = 500;
  static constexpr std::uint64_t kPerWork = 4;
  // A DATA frame that the client's windows cut short permits one WINDOW_UPDATE for each kPerUpdate octets of
  // the frame.
  static constexpr std::uint64_t kPerUpdate = 32;
  static constexpr base::Duration kWindow{10'000'000};

 private:
  const Http2ResetBound resets_;
  base::TimePoint window_end_{};
  base::TimePoint resets_end_{};
  std::uint64_t cheap_frames_ = 0;  // cheap frames in the current window
  std::uint64_t updates_ = 0;       // WINDOW_UPDATE frames among the cheap frames
  std::uint64_t work_ = 0;          // requests, and DATA frames except those in sent_, in the current window
  std::uint64_t sent_ = 0;  // DATA frames of weir that the client's windows cut short, in the current window
  std::uint64_t octets_ = 0;  // octets of bodies in the DATA frames that sent_ counts
  std::uint64_t reset_ = 0;   // resets in the current window of Http2ResetBound
};

}  // namespace weir::http
