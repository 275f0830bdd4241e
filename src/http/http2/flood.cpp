#include "weir/http/http2_flood.hpp"

namespace weir::http {

bool Http2FloodGuard::is_flood(Http2CheapFrame frame, base::TimePoint now) noexcept {
  if (frame == Http2CheapFrame::Reset || frame == Http2CheapFrame::Fault) {
    if (now >= resets_end_) {
      resets_end_ = now + resets_.window;
      reset_ = 0;
    }
    return ++reset_ > resets_.count;
  }
  if (now >= window_end_) {
    window_end_ = now + kWindow;
    cheap_frames_ = updates_ = work_ = sent_ = octets_ = 0;
  }
  if (frame == Http2CheapFrame::WindowUpdate && ++updates_ > kFree + kPerWork * work_ + octets_ / kPerUpdate)
    return true;
  return ++cheap_frames_ > kFree + kPerWork * (work_ + sent_);
}

}  // namespace weir::http
