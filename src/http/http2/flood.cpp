#include "weir/http/http2_flood.hpp"

namespace weir::http {

bool Http2FloodGuard::is_flood(Http2Cheap frame, base::TimePoint now) noexcept {
  if (frame == Http2Cheap::Reset || frame == Http2Cheap::Fault) {
    if (now >= resets_end_) {
      resets_end_ = now + resets_.window;
      reset_ = 0;
    }
    return ++reset_ > resets_.count;
  }
  if (now >= window_end_) {
    window_end_ = now + kWindow;
    cheap_ = updates_ = work_ = sent_ = octets_ = 0;
  }
  if (frame == Http2Cheap::WindowUpdate && ++updates_ > kFree + kPerWork * work_ + octets_ / kPerUpdate)
    return true;
  return ++cheap_ > kFree + kPerWork * (work_ + sent_);
}

}  // namespace weir::http
