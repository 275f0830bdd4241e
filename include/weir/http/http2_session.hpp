// One end of an HTTP/2 connection (RFC 9113) as octets in and octets out: frames, HPACK, stream states and
// flow control. No I/O and no clock. nghttp2 does the work; this class gives it weir's types.
//
// Belongs to one thread. The functions that send only queue frames: write() takes these out. Callbacks may
// call every function but receive() and write(). Throws std::bad_alloc if memory runs out, and what
// callbacks throw. A session that has thrown may only be destroyed.
#pragma once

#include "weir/http/http2_fields.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

struct nghttp2_session;

namespace weir::http {

// Error codes of RST_STREAM and GOAWAY (RFC 9113 §7).
enum class Http2Error : std::uint32_t {
  None = 0,
  Protocol = 1,
  Internal = 2,
  FlowControl = 3,
  SettingsTimeout = 4,
  StreamClosed = 5,
  FrameSize = 6,
  RefusedStream = 7,
  Cancel = 8,
  Compression = 9,
  Connect = 10,
  EnhanceYourCalm = 11,
};

// What weir announces in its SETTINGS.
struct Http2Limits {
  std::uint32_t max_streams = 100;            // streams that the peer may have open at once
  std::uint32_t stream_window = 64 << 10;     // octets of a body that weir holds for one stream
  std::uint32_t connection_window = 1 << 20;  // the same for all streams of a connection
  std::uint32_t max_head = 16 << 10;          // octets of a request's fields
  friend bool operator==(const Http2Limits&, const Http2Limits&) = default;
};

// What happens on one stream.
class Http2StreamEvents {
 public:
  // A field of the request has arrived. Trailers are not reported.
  virtual void on_field(std::string_view name, std::string_view value) = 0;
  // All fields of the request have arrived.
  virtual void on_head() = 0;
  // Octets of the body have arrived. Http2Session::consume() must be called once they need no memory.
  virtual void on_data(std::string_view octets) = 0;
  // The peer has ended its body.
  virtual void on_end() = 0;
  // The stream is over: both sides have ended it, or one has reset it with `error`. The session forgets this
  // object.
  virtual void on_closed(Http2Error error) = 0;
  // Returns octets of the body to send: writes at most `room` octets to `at`. Sets `ended` if none follow.
  // Returns 0 without `ended` if none are at hand; Http2Session::resume() continues then.
  [[nodiscard]] virtual std::size_t give(char* at, std::size_t room, bool& ended) noexcept = 0;
  // Returns the trailers to send after the body; null: none. Called once give() has set `ended`.
  [[nodiscard]] virtual const Http2Fields* trailers() const noexcept = 0;

 protected:
  ~Http2StreamEvents() = default;
};

// Frames of the peer that cost more than they are worth if there are many.
enum class Http2Cheap : std::uint8_t {
  Settings,
  Ping,
  Priority,
  WindowUpdate,
  EmptyData,
  Reset,
  Fault,
  Refused,
  Other
};

// What happens on the connection.
class Http2Events {
 public:
  // The peer opens a stream. Returns the object that gets its events, or null to refuse the stream.
  [[nodiscard]] virtual Http2StreamEvents* on_stream(std::int32_t id) = 0;
  // A cheap frame has arrived. `Fault`: weir answers a fault of the peer with a reset. `Refused`: the peer
  // has opened more streams than it may.
  virtual void on_cheap(Http2Cheap frame) = 0;
  virtual void on_pong() = 0;
  // weir has sent a GOAWAY with an error: the connection ends.
  virtual void on_failure() noexcept = 0;

 protected:
  ~Http2Events() = default;
};

class Http2Session {
 public:
  // The server's end. `events` must outlive the session.
  Http2Session(Http2Events& events, const Http2Limits& limits);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  // Takes octets of the peer. Returns false if the connection is broken: nothing can be read any more, and
  // write() may have a GOAWAY to send.
  [[nodiscard]] bool receive(std::string_view octets);
  // Appends frames to `out` while it is shorter than `most` octets.
  void write(std::string& out, std::size_t most);
  // Returns true if the connection is over: no stream is open, and GOAWAY was sent or received.
  [[nodiscard]] bool is_over() const noexcept;

  // Sends an interim response. `fields` begin with `:status`.
  void send_interim(std::int32_t id, const Http2Fields& fields);
  // Sends the head of a response. `has_body`: give() will be asked for a body.
  void send_head(std::int32_t id, const Http2Fields& fields, bool has_body);
  // Must be called when give() has octets again.
  void resume(std::int32_t id) noexcept;
  // Ends the stream at once.
  void reset(std::int32_t id, Http2Error error);
  // The peer may send so many further octets on this stream.
  void consume(std::int32_t id, std::size_t octets);

  // Asks the peer for a sign of life: on_pong() follows.
  void ping();
  // Announces that the connection ends soon, so that the peer opens no stream that would be lost
  // (RFC 9113 §6.8). go_away() must follow, at the earliest after one round trip.
  void announce_end();
  // Ends the connection: streams that the peer opens from now on are ignored. Streams that are open go on if
  // `error` is None, and end otherwise.
  void go_away(Http2Error error);

 private:
  struct Callbacks;
  struct Free {
    void operator()(nghttp2_session* session) const noexcept;
  };

  void note_opened(std::int32_t id) noexcept;
  void rethrow();

  Http2Events& events_;
  std::unique_ptr<nghttp2_session, Free> session_;
  std::int32_t last_opened_ = -1;  // the last stream that the peer has opened; -1: none
  // The last streams that the peer has skipped: those between the two.
  std::int32_t skipped_from_ = 0;
  std::int32_t skipped_to_ = 0;
  std::exception_ptr thrown_;  // by a function of the events
};

}  // namespace weir::http
