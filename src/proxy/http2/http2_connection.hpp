// A client's HTTP/2 connection: moves octets between the socket and the codec, and begins an exchange for
// each stream. Lives in the coroutine frame of Session::serve_http2().
//
// One coroutine reads and one writes. Exchanges of all streams put frames into one output buffer. The writer
// sends the buffer when the loop has handled all other ready events. So answers share TLS records and system
// calls.
//
// Bounds: Http2Limits, kMostOutput octets of output, and Http2FloodGuard for frames that cost weir work but
// advance no request. Before weir ends a connection, it announces the end to the client (GOAWAY), so that no
// request is lost.
#pragma once

#include "proxy/http2/http2_stream.hpp"

#include "weir/http/http2_flood.hpp"
#include "weir/http/http2_session.hpp"
#include "weir/net/signal.hpp"
#include "weir/observe/counters.hpp"
#include "weir/proxy/http2_settings.hpp"
#include "weir/proxy/worker.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::proxy {

class Session;

class Http2Connection final : private http::Http2Events {
 public:
  // If one head of a client is larger than this multiple of max_head, the connection ends.
  static constexpr std::size_t kMostHeads = 8;

  // The session and the settings must outlive this object. `uncounted`: octets in the session's inbox that
  // the counter bytes_in does not contain yet.
  Http2Connection(Session& session, const Http2Settings& settings, std::size_t uncounted);
  ~Http2Connection();

  // Serves requests. Returns when the client or weir has ended the connection, and all exchanges have ended.
  [[nodiscard]] net::Task<void> run();
  // Ends the connection if the client takes too long. Must be called on each tick of the session.
  void on_tick() noexcept;

  [[nodiscard]] Session& session() noexcept { return session_; }
  [[nodiscard]] Worker& worker() noexcept { return worker_; }
  [[nodiscard]] http::Http2Session& codec() noexcept { return codec_; }
  // Moves frames from the codec to the output buffer while the buffer has room. Wakes the writer.
  void pump();
  // Returns true if the output buffer is full, because the client does not read.
  [[nodiscard]] bool is_full() const noexcept { return out_.size() - sent_ >= kMostOutput; }
  // Must be called before a wait for room in the output buffer. The call of Http2Stream::note_room() ends the
  // wait.
  void want_room() noexcept { room_wanted_ = true; }
  void reset(std::int32_t id, http::Http2Error error);
  void consume(std::int32_t id, std::size_t octets);
  // Announces the end of the connection to the client, for example because weir stops or a new process takes
  // over.
  void leave();
  // Must be called when an exchange begins for the stream `id`. Must not be called after a new process has
  // taken over (Worker::retiring), because the last GOAWAY may already exclude the stream.
  void note_taken(std::int32_t id) noexcept { last_taken_ = std::max(last_taken_, id); }
  // Returns true while the client's socket accepts nothing.
  [[nodiscard]] bool is_blocked() const noexcept { return blocked_since_ != base::TimePoint{}; }
  // Ends the connection at once, without another frame. Used for errors such as a lack of memory.
  void fail() noexcept;
  // Returns the kind of abuse for which weir ended the connection. Empty if there was none.
  [[nodiscard]] std::string_view abuse() const noexcept { return abuse_; }
  // Returns true if the connection broke, or if fail() was called.
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }

  void note_data(std::size_t octets) noexcept;
  // Must be called when a frame with `octets` of a body is sent. `cut`: true if the client's flow-control
  // windows permitted no larger frame.
  void note_sent(std::size_t octets, bool cut) noexcept { guard_.note_sent(octets, cut); }
  // Must be called when the head of a stream is complete.
  void note_ready() noexcept {
    ready_ = true;
    note_head_ended();
  }
  // Must be called when a head is complete, or when a stream ends before its head is complete.
  void note_head_ended() noexcept { head_begun_ = {}; }
  void note_huge_head() { end_by(observe::Goaway::Head); }

 private:
  static constexpr std::size_t kMostOutput = 64 << 10;

  [[nodiscard]] http::Http2StreamEvents* on_stream(std::int32_t id) override;
  void on_cheap_frame(http::Http2CheapFrame frame) override;
  void on_pong() override;
  void on_failure() noexcept override;

  [[nodiscard]] net::Task<void> read_all();
  [[nodiscard]] net::ErrorCode receive();
  [[nodiscard]] net::Task<net::ErrorCode> read_more();
  [[nodiscard]] bool outlast(const net::ErrorCode& ec);
  [[nodiscard]] bool take_received();
  [[nodiscard]] net::Task<void> write_all();
  [[nodiscard]] bool write_some(net::ErrorCode& ec);
  [[nodiscard]] bool has_output() const noexcept { return out_.size() != sent_; }
  [[nodiscard]] bool is_turn_over() const noexcept;
  void begin_streams();
  void begin(Http2Stream& stream);
  void end_stream(Http2Stream& stream, bool ended) noexcept;
  void remove_done();
  void end_by(observe::Goaway reason);
  void send_last_goaway();
  void note_room() noexcept;
  void rest(base::TimePoint now) noexcept;
  void note_progress(base::TimePoint now) noexcept;
  void watch_peer(base::TimePoint now);

  Session& session_;
  Worker& worker_;
  const Http2Settings settings_;
  http::Http2FloodGuard guard_;
  http::Http2Session codec_;
  std::vector<std::unique_ptr<Http2Stream>> streams_;
  std::string out_;  // frames to send; the first `sent_` octets were sent
  std::size_t sent_ = 0;
  net::Notification output_;    // wakes the writer: there are frames to send, or streams to remove
  net::Notification ended_;     // wakes run(), which checks whether all streams and writes have ended
  net::Notification progress_;  // wakes the reader: the socket accepts octets again
  net::Signal writer_ended_;
  std::size_t uncounted_ = 0;      // octets in the inbox that the counter bytes_in does not contain yet
  std::size_t data_read_ = 0;      // octets of bodies in the current read; the exchanges count them
  std::size_t serving_ = 0;        // streams whose exchange has not ended
  std::int32_t last_taken_ = 0;    // the highest ID of the streams for which an exchange began; 0: none
  unsigned begun_in_turn_ = 0;     // requests that began since the connection last yielded
  base::Duration work_in_turn_{};  // time spent to begin the requests that begun_in_turn_ counts
  base::TimePoint head_begun_{};   // when the incomplete head began; the epoch: there is no incomplete head
  // the unacknowledged octets of the socket when weir last read their number; note_progress() compares them
  std::size_t unread_ = 0;
  base::TimePoint last_received_{};  // when octets last arrived
  base::TimePoint pinged_{};  // when weir sent a PING; the epoch: weir sent none since octets last arrived
  base::TimePoint blocked_since_{};  // since when the socket accepts no octets; the epoch: it accepts octets
  base::TimePoint announced_{};      // when weir announced the end of the connection; the epoch: not yet
  std::string_view abuse_;           // the kind of abuse for which weir ended the connection; static text
  bool reads_ = true;                // weir still reads from the connection
  bool last_goaway_queued_ = false;  // the last GOAWAY is queued or sent
  bool failed_ = false;
  bool room_wanted_ = false;  // a stream waits for room in the output buffer
  bool writing_ = false;      // the writer waits for the socket
  bool stopped_ = false;      // the writer must end
  bool ready_ = false;        // true: a stream may have a complete head, but no exchange yet
};

}  // namespace weir::proxy
