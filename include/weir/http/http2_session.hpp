// One end of an HTTP/2 connection (RFC 9113): frames, HPACK, stream states and flow control. The caller moves
// the octets. No I/O and no clock. nghttp2 implements the protocol; this class gives it weir's types.
//
// Belongs to one thread. Functions such as send_head() only queue frames; write() appends queued frames to a
// buffer. Callbacks may call every function except receive() and write(). Throws std::bad_alloc if memory
// runs out, and rethrows exceptions of callbacks. After an exception the session may only be destroyed.
#pragma once

#include "weir/http/http2_fields.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
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

// The limits that weir announces in its SETTINGS.
struct Http2Limits {
  std::uint32_t max_streams = 100;            // streams that the peer may have open at once
  std::uint32_t stream_window = 64 << 10;     // octets of a body that weir stores for one stream
  std::uint32_t connection_window = 1 << 20;  // octets of bodies that weir stores for all streams together
  std::uint32_t max_head = 16 << 10;          // the maximum size of a request's fields, in octets
  friend bool operator==(const Http2Limits&, const Http2Limits&) = default;
};

// The events of one stream. The session calls these functions.
class Http2StreamEvents {
 public:
  // Called for each field of a head. In a client's session, this includes the trailers of a response, which
  // the session reports like a head. A server's session does not report the trailers of a request.
  virtual void on_field(std::string_view name, std::string_view value) = 0;
  // Called when all fields of a head have arrived.
  virtual void on_head() = 0;
  // Called when octets of the body have arrived. Http2Session::consume() must be called when the octets no
  // longer use memory.
  virtual void on_data(std::string_view octets) = 0;
  // Called when the peer has ended its body.
  virtual void on_end() = 0;
  // Called when the session has written the end of its own message (END_STREAM).
  virtual void on_end_sent() = 0;
  // Called when the stream is over: both sides have ended it, or one side has reset it with `error`. The
  // session does not use this object afterwards. In a client's session, RefusedStream means that the server
  // has not processed the request (RFC 9113 §8.7).
  virtual void on_closed(Http2Error error) = 0;
  // Writes at most `room` octets of the body to `at` and returns their number. Sets `ended` if no more octets
  // follow. Returns 0 without setting `ended` if no octets are ready. Http2Session::resume() must be called
  // once some are ready.
  [[nodiscard]] virtual std::size_t give(char* at, std::size_t room, bool& ended) noexcept = 0;
  // Returns the trailers to send after the body, or null if there are none. Called after give() has set
  // `ended`.
  [[nodiscard]] virtual const Http2Fields* trailers() const noexcept = 0;

 protected:
  ~Http2StreamEvents() = default;
};

// The kinds of cheap frames: frames that cost weir work but do not advance any request. A few of them are
// normal, many are an attack (http2_flood.hpp).
enum class Http2CheapFrame : std::uint8_t {
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

// The events of the connection. The session calls these functions.
class Http2Events {
 public:
  // Called when a client opens a stream that no GOAWAY excludes. Returns the object that gets the stream's
  // events, or null to refuse the stream. Not called in a client's session.
  [[nodiscard]] virtual Http2StreamEvents* on_stream(std::int32_t id) = 0;
  // Called for each cheap frame that arrives. `Fault`: weir answers a fault of the peer with a reset.
  // `Refused`: the peer has opened more streams than it may.
  virtual void on_cheap_frame(Http2CheapFrame frame) = 0;
  // Called when the peer has answered a PING of weir.
  virtual void on_pong() = 0;
  // Called when weir has sent a GOAWAY with an error, which ends the connection.
  virtual void on_failure() noexcept = 0;

 protected:
  ~Http2Events() = default;
};

enum class Http2Side : std::uint8_t { Server, Client };

class Http2Session {
 public:
  // The number of frames of unknown types that a server may send without a DATA or HEADERS frame in between.
  // If the server sends more, the connection ends. Http2FloodGuard bounds the frames of clients.
  static constexpr std::uint32_t kMostUnknown = 1000;

  // Creates one end of a connection. `events` must outlive the session. A client's session forbids the server
  // to push streams, and does not announce `limits.max_streams`.
  Http2Session(Http2Events& events, const Http2Limits& limits, Http2Side side = Http2Side::Server);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  // Processes octets from the peer. Returns false if the connection is broken: no more octets can be
  // processed, and write() may have a GOAWAY to send.
  [[nodiscard]] bool receive(std::string_view octets);
  // Appends queued frames to `out` while `out` is shorter than `most` octets.
  void write(std::string& out, std::size_t most);
  // Returns true if the connection is over: no stream is open, and GOAWAY was sent or received.
  [[nodiscard]] bool is_over() const noexcept;

  // Client: opens a stream with a request. `has_body`: a body follows, for which the session calls give().
  // Returns the stream's ID, or nullopt if the connection accepts no more requests. `stream` must stay valid
  // until on_closed() or detach().
  [[nodiscard]] std::optional<std::int32_t> request(const Http2Fields& fields, bool has_body,
                                                    Http2StreamEvents& stream);
  // Client: returns false if the server has sent GOAWAY, no stream ID is left, or the connection is broken.
  [[nodiscard]] bool accepts_requests() const noexcept;
  // Returns true if the peer has sent GOAWAY.
  [[nodiscard]] bool peer_goes_away() const noexcept { return peer_goes_away_; }
  // Client: returns how many streams the server permits at once, by its SETTINGS.
  [[nodiscard]] std::uint32_t max_streams() const noexcept;
  // Stops all events of this stream, so that the object that received them can be destroyed.
  void detach(std::int32_t id) noexcept;

  // Sends an interim response. `fields` begin with `:status`.
  void send_interim(std::int32_t id, const Http2Fields& fields);
  // Sends the head of a response. `has_body`: a body follows, for which the session calls give().
  void send_head(std::int32_t id, const Http2Fields& fields, bool has_body);
  // Must be called when octets of a body are ready again after give() has returned 0 without `ended`.
  void resume(std::int32_t id) noexcept;
  // Resets the stream at once.
  void reset(std::int32_t id, Http2Error error);
  // Permits the peer to send `octets` more octets on this stream.
  void consume(std::int32_t id, std::size_t octets);

  // Sends a PING, to check that the peer still answers. The session calls on_pong() when the answer arrives.
  void ping();
  // Announces to the peer that the connection ends soon, so that the peer opens no stream that would be lost
  // (RFC 9113 §6.8). The caller must wait for at least one round trip and then call go_away().
  void announce_end();
  // Ends the connection: ignores streams that the peer opens from now on. Open streams continue if `error` is
  // None; otherwise they end.
  void go_away(Http2Error error);
  // Ends the connection as go_away(None) does, and tells the peer that streams with a higher ID than `last`
  // were not processed. Closes these streams without a frame.
  void go_away_after(std::int32_t last);
  // Returns true if the last GOAWAY excludes this stream.
  [[nodiscard]] bool excludes(std::int32_t id) const noexcept { return id > last_accepted_; }

 private:
  struct Callbacks;
  struct Free {
    void operator()(nghttp2_session* session) const noexcept;
  };

  void note_opened(std::int32_t id) noexcept;
  [[nodiscard]] bool is_flood(std::uint8_t type) noexcept;
  void rethrow();

  Http2Events& events_;
  const Http2Side side_;
  std::unique_ptr<nghttp2_session, Free> session_;
  std::int32_t last_opened_ = -1;  // ID of the last stream that the peer has opened; -1: none
  // the highest stream ID that the latest GOAWAY accepts; no bound before the first GOAWAY
  std::int32_t last_accepted_ = std::numeric_limits<std::int32_t>::max();
  // The stream IDs that the peer skipped last: those between skipped_from_ and skipped_to_. The peer must not
  // use these IDs any more.
  std::int32_t skipped_from_ = 0;
  std::int32_t skipped_to_ = 0;
  std::uint32_t unknown_ = 0;  // frames of unknown types since the last DATA or HEADERS frame
  std::int32_t unsent_ = -1;   // ID of the last stream whose request could not be sent; -1: none
  bool peer_goes_away_ = false;
  std::exception_ptr thrown_;  // the exception that a callback has thrown
};

}  // namespace weir::http
