// Bounds the frames of an HTTP/2 client that cost weir work and bring no request on: SETTINGS, PING,
// PRIORITY, WINDOW_UPDATE, empty DATA (CVE-2019-9511 to 9518), and resets (CVE-2023-44487, CVE-2025-8671).
// Pure.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/http2_session.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace weir::http {

// At most `count` streams may be reset within `window`. Counts resets by the client, and resets that weir
// sends because of the client's faults.
struct Http2ResetBound {
  std::uint32_t count = 100;
  base::Duration window{10'000'000};
  friend bool operator==(const Http2ResetBound&, const Http2ResetBound&) = default;
};

class Http2FloodGuard {
 public:
  explicit Http2FloodGuard(const Http2ResetBound& resets) noexcept : resets_(resets) {}

  // Counts a request, or a DATA frame in either direction. Each permits kPerWork cheap frames more.
  void note_work() noexcept { ++work_; }
  // Counts a cheap frame. Returns true if the connection must end, because it has sent too many.
  [[nodiscard]] bool is_flood(Http2Cheap frame, base::TimePoint now) noexcept;

  static constexpr std::uint64_t kFree = 500;  // cheap frames in a window without any work
  static constexpr std::uint64_t kPerWork = 4;
  static constexpr base::Duration kWindow{10'000'000};

 private:
  const Http2ResetBound resets_;
  base::TimePoint window_end_{};
  base::TimePoint resets_end_{};
  std::uint64_t cheap_ = 0;  // cheap frames in the current window
  std::uint64_t work_ = 0;   // requests and DATA frames in the current window
  std::uint64_t reset_ = 0;  // resets in the current window of the bound
};

}  // namespace weir::http
