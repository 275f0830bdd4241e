// An HTTP/2 connection to a server. Many requests of one worker share the connection. Each request has an
// Http2ServerStream.
//
// One coroutine connects and then reads, and another coroutine writes. Both hold a reference to this object,
// so the object lives until both have ended. The pool calls tick() and close(), and drops its reference when
// has_ended() is true.
//
// Bounds: At most Http2ServerStream::kWindow octets of each response wait for its reader. At most kMostOutput
// octets of frames wait to be sent.
#pragma once

#include "weir/http/http2_session.hpp"
#include "weir/net/dial.hpp"
#include "weir/net/signal.hpp"
#include "weir/net/stream.hpp"
#include "weir/upstream/server_group.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::upstream {

class Http2ServerStream;

class Http2ServerConnection final : public std::enable_shared_from_this<Http2ServerConnection>,
                                    private http::Http2Events {
 public:
  struct Settings {
    std::uint32_t max_streams = 100;
    base::Duration connect{};  // time limit for the connect
    base::Duration idle{};     // how long the connection stays open without a request
  };
  // The server to connect to, and how to connect.
  struct Target {
    ServerGroup::Member& member;
    ServerGroup::Member::Location location;
    net::TlsSession session;     // the TLS session to resume; may be null
    bool requires_http2 = true;  // false: a server may choose HTTP/1.1 by ALPN
  };
  // If a server is silent for this long while requests wait for it, weir sends a PING. If no octet arrives
  // within the same time after the PING, weir ends the connection.
  static constexpr base::Duration kPing{15'000'000};
  // If the server answers a PING but stays silent, weir waits for this time before the next PING. A gRPC
  // server ends a connection that gets more than a few PINGs without data in between.
  static constexpr base::Duration kPingAgain{300'000'000};
  // If no octet arrives for this long after a PING, further requests use another connection.
  static constexpr base::Duration kDoubt{2'000'000};

  Http2ServerConnection(const net::Executor& executor, net::Watchdog& watchdog, const Settings& settings);
  ~Http2ServerConnection();

  // Connects to the server. Exactly one of start() and the two adopt() functions must be called, and only
  // once.
  void start(Target target);
  // Uses a connected stream on which the server speaks HTTP/2.
  void adopt(std::unique_ptr<net::Stream> stream, std::uint32_t address_changes);
  // Uses `octets` as the connection to a server that speaks HTTP/2. `octets` must outlive the connection's
  // coroutines. stream() must not be called. Tests use this function to avoid a socket.
  void adopt(net::DuplexStream& octets);

  [[nodiscard]] bool is_connecting() const noexcept {
    return state_ == State::Connecting || state_ == State::Greeting;
  }
  [[nodiscard]] bool is_open() const noexcept { return state_ == State::Open; }
  // Returns true if the connection failed or ended.
  [[nodiscard]] bool has_ended() const noexcept { return state_ == State::Ended; }
  // Returns true if the server chose HTTP/1.1 (Target::requires_http2 was false).
  [[nodiscard]] bool is_http1() const noexcept { return state_ == State::Http1; }
  // Returns true if another request may attach() to the connection.
  [[nodiscard]] bool has_room() const noexcept;
  // Returns true if the server permits one more request on this connection now. If not, an attached request
  // that was not sent yet must use another connection. REQUIRES is_open().
  [[nodiscard]] bool may_send() const noexcept;
  // Returns false if the server has announced the end of the connection, or broke the protocol. REQUIRES that
  // the connection is or was open.
  [[nodiscard]] bool accepts_requests() const noexcept { return codec_->accepts_requests(); }
  // Returns true for the first caller only. That caller counts the connection.
  [[nodiscard]] bool mark_used() noexcept { return !std::exchange(used_, true); }
  // Returns true if the server permits no requests at all, by its SETTINGS. REQUIRES is_open().
  [[nodiscard]] bool is_closed_to_requests() const noexcept { return codec_->max_streams() == 0; }
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }
  // Returns true if the connection may look idle to the server, so that the server may be closing it. This is
  // the case if no request is open. It is also the case if the connection was idle before the open requests
  // were sent, and no octet has arrived from the server since then.
  [[nodiscard]] bool may_meet_idle_close() const noexcept;
  // Returns how often octets have arrived from the server.
  [[nodiscard]] std::uint64_t arrivals() const noexcept { return arrivals_; }
  // Returns why the connection could not be opened, or how it broke. Returns no error while the connection is
  // open. If is_refusal() is true for the error, the server ended the connection by GOAWAY.
  [[nodiscard]] const net::ErrorCode& error() const noexcept { return error_; }
  // Returns the reason of a failed TLS handshake, as text for the log. May be empty.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  // Returns the value that Member::address_changes() had when the connection was opened, or the value that
  // set_address_changes() has stored since then. With this value, the address to which the connection leads
  // was one of the server's addresses.
  [[nodiscard]] std::uint32_t address_changes() const noexcept { return address_changes_; }
  void set_address_changes(std::uint32_t address_changes) noexcept { address_changes_ = address_changes; }
  // Returns the connection, or null if another caller has taken it. REQUIRES is_http1().
  [[nodiscard]] std::unique_ptr<net::Stream> take_http1() noexcept { return std::move(stream_); }
  // Return the socket and the codec of the connection. REQUIRES is_open().
  [[nodiscard]] net::Stream& stream() noexcept { return *stream_; }
  [[nodiscard]] http::Http2Session& codec() noexcept { return *codec_; }
  [[nodiscard]] const net::Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  [[nodiscard]] bool is_tls() const noexcept { return stream_ != nullptr && stream_->is_tls(); }

  // Must be called by the pool in each tick of the watchdog.
  void tick() noexcept;
  // Makes the connection accept no more requests. The connection ends after its open requests.
  void leave() noexcept { leaving_ = true; }
  // Ends the connection and all its requests.
  void close() noexcept;

  void attach(Http2ServerStream& stream);
  void detach(Http2ServerStream& stream) noexcept;
  // Must be called when a part of a response arrives. The next PING then follows after kPing of
  // silence, even if kPingAgain applied before.
  void note_response() noexcept { ping_after_ = kPing; }
  // Must be called when a caller has waited in vain for a response. The connection may then be dead, so this
  // function makes weir send a PING soon.
  void doubt() noexcept;
  // Must be called after the codec got something to send.
  void note_output() noexcept { output_.notify(); }
  // Ends the connection. Must be called if memory ran out in the codec, because the codec must then not be
  // used any more.
  void fail() noexcept {
    broken_ = true;
    end(net::asio::error::no_memory);
  }

 private:
  static constexpr std::size_t kMostOutput = 64 << 10;
  enum class State : std::uint8_t {
    Connecting,
    Greeting,  // connected; the server's SETTINGS have not arrived
    Open,
    Http1,
    Ended
  };

  [[nodiscard]] http::Http2StreamEvents* on_stream(std::int32_t) override { return nullptr; }
  void on_cheap_frame(http::Http2CheapFrame) override {}
  void on_pong() override {}
  void on_failure() noexcept override {}

  [[nodiscard]] net::Task<void> run(std::shared_ptr<Http2ServerConnection> self, Target target);
  [[nodiscard]] net::Task<net::ErrorCode> connect(const Target& target);
  void note_open() noexcept;
  [[nodiscard]] net::Task<void> read_all(std::shared_ptr<Http2ServerConnection> self);
  [[nodiscard]] net::Task<void> write_all(std::shared_ptr<Http2ServerConnection> self);
  void end(const net::ErrorCode& why) noexcept;

  const net::Executor executor_;
  net::Watchdog& watchdog_;
  const Settings settings_;
  State state_ = State::Connecting;
  net::ErrorCode error_;
  std::string fault_;
  std::uint32_t address_changes_ = 0;
  net::Dial* dial_ = nullptr;  // points into the frame of connect() while connect() waits
  std::unique_ptr<net::Stream> stream_;
  net::DuplexStream* octets_ = nullptr;  // *stream_ after the connect; in tests, the argument of adopt()
  std::optional<http::Http2Session> codec_;
  std::vector<Http2ServerStream*> streams_;
  std::string out_;           // frames to send
  net::Notification output_;  // wakes the writer when the codec has frames to send
  std::array<char, 16 << 10> received_;
  std::uint64_t arrivals_ = 0;
  base::Duration silent_{};  // time without any octet, while requests waited for the server
  base::Duration ping_after_ = kPing;
  base::Duration unanswered_{};  // time since a PING without any octet from the server
  base::Duration closing_{};     // time without a request on a connection that accepts no more requests
  base::Duration unused_{};      // time without a request
  base::Duration connecting_{};
  bool used_ = false;  // true once a request has used the connection
  bool pinged_ = false;
  bool leaving_ = false;    // the connection accepts no more requests
  bool gone_away_ = false;  // GOAWAY is queued or sent
  bool broken_ = false;     // the codec cannot read any more
};

}  // namespace weir::upstream
