// The functions of Http2StreamWatch, which http2_stream.hpp declares.
#include "proxy/http2/http2_stream.hpp"

namespace weir::proxy {

bool Http2StreamWatch::has_disconnected() const noexcept {
  return stream_.is_disconnected();
}

void Http2StreamWatch::note_disconnected() noexcept {
  if (!waits_cancellably_ || left_ || waits_without_client_) return;
  left_ = true;
  stream_.cancel_all();
}

void Http2StreamWatch::on_late() noexcept {
  late_ = true;
  stream_.cancel_all();
}

void Http2StreamWatch::on_tick() noexcept {
  if (stream_.worker.hard_stop) {
    late_ = true;
    return stream_.cancel_all();
  }
  if (stream_.is_disconnected()) note_disconnected();
  if (!waits_cancellably_ && !stream_.worker.draining) skip_ticks();
}

}  // namespace weir::proxy
