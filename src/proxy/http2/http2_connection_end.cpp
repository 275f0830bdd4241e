// When and why an HTTP/2 connection ends: floods, drains, deadlines.
#include "proxy/client/session.hpp"
#include "proxy/http2/http2_connection.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weir::proxy {

namespace {

// How long weir waits for the answer to the PING that follows the announcement of the end (RFC 9113 §6.8).
constexpr base::Duration kRoundTrip{1'000'000};

// An idle connection releases its buffers after this time without new octets.
constexpr base::Duration kRestAfter{2'000'000};

observe::Goaway reason_of(http::Http2CheapFrame frame) noexcept {
  using http::Http2CheapFrame;
  switch (frame) {
    case Http2CheapFrame::Settings:
      return observe::Goaway::Settings;
    case Http2CheapFrame::Ping:
      return observe::Goaway::Ping;
    case Http2CheapFrame::Priority:
      return observe::Goaway::Priority;
    case Http2CheapFrame::WindowUpdate:
      return observe::Goaway::WindowUpdate;
    case Http2CheapFrame::EmptyData:
      return observe::Goaway::EmptyData;
    case Http2CheapFrame::Reset:
    case Http2CheapFrame::Fault:
      return observe::Goaway::Resets;
    case Http2CheapFrame::Refused:
    case Http2CheapFrame::Other:
      break;
  }
  return observe::Goaway::Other;
}

}  // namespace

void Http2Connection::on_cheap_frame(http::Http2CheapFrame frame) {
  if (frame == http::Http2CheapFrame::Reset) worker_.counters.http2_resets(observe::ResetBy::Client).add();
  if (frame == http::Http2CheapFrame::Refused) worker_.counters.http2_resets(observe::ResetBy::Refused).add();
  if (frame == http::Http2CheapFrame::Fault) worker_.counters.http2_resets(observe::ResetBy::Fault).add();
  const bool is_weirs = frame == http::Http2CheapFrame::Refused && worker_.retiring;
  if (!is_weirs && guard_.is_flood(frame, last_received_)) end_by(reason_of(frame));
}

// Called when the client has answered the PING that weir sent after the first GOAWAY. The client then knows
// that it must open no more streams, so the last GOAWAY can follow.
void Http2Connection::on_pong() {
  if (announced_ != base::TimePoint{} && !last_goaway_queued_) send_last_goaway();
}

// Records that the codec ended the connection because of a fault of the client.
void Http2Connection::on_failure() noexcept {
  if (!std::exchange(last_goaway_queued_, true)) worker_.counters.http2_goaways(observe::Goaway::Fault).add();
}

// Ends the connection because the client abuses it.
void Http2Connection::end_by(observe::Goaway reason) {
  if (std::exchange(last_goaway_queued_, true)) return;
  worker_.counters.http2_goaways(reason).add();
  abuse_ = observe::kGoawayNames[static_cast<std::size_t>(reason)];
  codec_.go_away(http::Http2Error::EnhanceYourCalm);
}

// Announces the end by a first GOAWAY and a PING. on_pong() or on_tick() then sends the last GOAWAY. If a new
// process already has the state of the limiters, this process takes no new requests, so it sends the last
// GOAWAY at once.
void Http2Connection::leave() {
  if (last_goaway_queued_ || failed_) return;
  if (announced_ == base::TimePoint{}) {
    worker_.counters.http2_goaways(observe::Goaway::Drain).add();
    announced_ = worker_.clock.now();
    codec_.announce_end();
    codec_.ping();
  }
  if (worker_.retiring) send_last_goaway();
  output_.notify();
}

// Sends the last GOAWAY. Sends nothing while the state of the limiters is handed over to a new process,
// because weir does not know yet which process will serve the waiting streams. Then on_tick() or leave()
// sends the GOAWAY later.
//
// Once the new process has that state, the GOAWAY excludes the streams for which no exchange has begun.
// Clients repeat excluded requests on their own, but many clients do not repeat requests that were reset with
// REFUSED_STREAM.
void Http2Connection::send_last_goaway() {
  if (worker_.decision_pause.is_on()) return;
  last_goaway_queued_ = true;
  if (worker_.retiring)
    codec_.go_away_after(last_taken_);
  else
    codec_.go_away(http::Http2Error::None);
  output_.notify();
}

void Http2Connection::fail() noexcept {
  failed_ = true;
  session_.client.cancel();
  ended_.notify();
}

void Http2Connection::on_tick() noexcept {
  if (worker_.hard_stop) ended_.notify();
  if (failed_) return;
  try {
    const auto now = worker_.clock.now();
    // also here, because the writer does not call remove_done() while the client reads nothing
    remove_done();
    rest(now);
    if (session_.must_leave()) leave();
    const bool announced = announced_ != base::TimePoint{};
    if (announced && !last_goaway_queued_ && now - announced_ >= kRoundTrip) send_last_goaway();
    // Wakes the reader. Nothing else does so if the last GOAWAY was sent while no stream was open.
    if (last_goaway_queued_ && serving_ == 0) session_.client.cancel();
    watch_peer(now);
  } catch (const std::bad_alloc&) {
    fail();
  }
}

// Releases the empty buffers of a connection that receives nothing, such as one whose only streams are idle
// WebSockets. The next octets that arrive get new buffers.
void Http2Connection::rest(base::TimePoint now) noexcept {
  if (now - last_received_ < kRestAfter) return;
  if (session_.inbox.empty()) session_.inbox.release();
  if (out_.empty()) std::string().swap(out_);
  session_.client.trim();
}

// Treats newly acknowledged octets as a sign of life. Other signs come late: the kernel reports room only
// once much of its buffer is free, and a PING waits behind all octets in that buffer.
void Http2Connection::note_progress(base::TimePoint now) noexcept {
  const auto unread = session_.client.unacknowledged();
  if (unread < unread_) {
    last_received_ = now;
    pinged_ = {};
    if (blocked_since_ != base::TimePoint{}) blocked_since_ = now;
  }
  unread_ = unread;
}

// Ends the connection if its client reads nothing, does not complete a head, or gives no sign of life while
// streams are open.
void Http2Connection::watch_peer(base::TimePoint now) {
  const auto& server = worker_.config().server;
  if (blocked_since_ != base::TimePoint{} || pinged_ != base::TimePoint{}) note_progress(now);
  if (blocked_since_ != base::TimePoint{} && now - blocked_since_ >= server.write_timeout) {
    worker_.counters.client_errors(observe::ClientError::WriteTimeout).add();
    return fail();
  }
  if (head_begun_ != base::TimePoint{} && now - head_begun_ >= server.head_timeout) {
    worker_.counters.client_errors(observe::ClientError::HeadTimeout).add();
    return fail();
  }
  if (serving_ == 0 || now - std::max(last_received_, pinged_) < settings_.ping) return;
  if (pinged_ != base::TimePoint{}) {
    worker_.counters.http2_goaways(observe::Goaway::Silent).add();
    return fail();
  }
  pinged_ = now;
  unread_ = session_.client.unacknowledged();
  codec_.ping();
  output_.notify();
}

}  // namespace weir::proxy
