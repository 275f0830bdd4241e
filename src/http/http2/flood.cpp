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
    cheap_ = work_ = 0;
  }
  return ++cheap_ > kFree + kPerWork * work_;
}

}  // namespace weir::http
