// One request of an HTTP/2 connection and its answer. Http2Connection owns the stream; only the worker's
// thread uses it.
//
// The codec calls the functions of Http2StreamEvents while it reads or writes. These functions only record
// events. They resume no coroutine at once, because a resumed exchange could call the codec, and the codec's
// callbacks must not call the codec.
#pragma once

#include "proxy/client/client_stream.hpp"
#include "proxy/exchange/ending.hpp"
#include "proxy/http2/http2_sink.hpp"
#include "proxy/http2/http2_tunnel.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/http/http2_session.hpp"
#include "weir/net/byte_reader.hpp"
#include "weir/net/signal.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

class AskService;
class Exchange;
class Http2Connection;
class Http2Stream;
struct ExchangeBuffers;

// The watch of one stream. The client counts as disconnected once it has reset the stream or the connection
// has ended.
class Http2StreamWatch final : public ClientWatch {
 public:
  Http2StreamWatch(net::Watchdog& watchdog, Http2Stream& stream) : ClientWatch(watchdog), stream_(stream) {}
  [[nodiscard]] bool has_disconnected() const noexcept override;
  // Must be called when the client has left.
  void note_disconnected() noexcept;

 private:
  void on_late() noexcept override;
  void on_tick() noexcept override;

  Http2Stream& stream_;
};

class Http2Stream final : public ClientStream, public http::Http2StreamEvents, private net::ByteReader {
 public:
  // The connection must outlive the stream.
  Http2Stream(Http2Connection& connection, std::int32_t id);

  // Serves the request. Must be called once, after on_head().
  [[nodiscard]] net::Task<void> serve();
  // Must be called after serve() has ended. `ended`: false if serve() threw an exception.
  void finish(bool ended) noexcept;
  // Must be called when the connection has ended.
  void note_disconnected() noexcept;

  [[nodiscard]] std::int32_t id() const noexcept { return id_; }
  // Returns true if all fields of the request have arrived, and serve() was not called.
  [[nodiscard]] bool is_ready() const noexcept { return head_arrived_ && !serving_; }
  // Returns true if neither the codec nor an exchange uses the stream any more.
  [[nodiscard]] bool is_done() const noexcept { return closed_ && (!head_arrived_ || finished_); }
  [[nodiscard]] bool is_disconnected() const noexcept { return disconnected_; }
  // Returns the number of body octets that the exchange has not used yet. The client's flow-control windows
  // are smaller by this number.
  [[nodiscard]] std::size_t unconsumed() const noexcept { return arrived_.size() - taken_; }
  // Ends a wait for room in the connection's output buffer.
  void note_room() noexcept;
  // Ends every wait of the exchange.
  void cancel_all() noexcept;
  // Reads octets of the body that have arrived. Returns 0 only with an error: eof at the end of the body,
  // would_block if no octets are available, connection_reset if the client has gone.
  [[nodiscard]] std::size_t try_read(char* at, std::size_t size, net::ErrorCode& ec);
  [[nodiscard]] net::Task<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec) override;
  // Waits until try_read() has something to return.
  [[nodiscard]] net::Port::Wait wait_readable() noexcept {
    return arrival_.wait(unconsumed() != 0 || disconnected_ || ended_);
  }
  // Frees memory that the stream does not need while it waits.
  void trim() noexcept;

  [[nodiscard]] bool is_secure() const noexcept override;
  [[nodiscard]] std::string_view listener_name() const noexcept override;
  [[nodiscard]] std::string_view certificate() override;
  [[nodiscard]] std::optional<http::ConnectionEnds> ends() const override;
  [[nodiscard]] std::size_t head_size() const noexcept override { return head_text_.size(); }
  [[nodiscard]] net::Task<net::ErrorCode> send_continue() override;
  [[nodiscard]] net::Task<net::ErrorCode> send_interim(const http::ResponseHead& head) override;
  [[nodiscard]] bool can_answer() const noexcept override { return true; }
  [[nodiscard]] std::optional<net::ErrorCode> try_answer(http::Answer answer) override;
  [[nodiscard]] net::Task<net::ErrorCode> finish_answer() override;
  [[nodiscard]] BodySink& begin_answer(const http::ResponseHead& head,
                                       const AnswerAdditions& additions) override;
  [[nodiscard]] std::size_t unacknowledged() const noexcept override;
  void cut_answer() noexcept override {}  // not needed, because Ending::Abort resets the stream
  [[nodiscard]] net::Task<net::ErrorCode> send_upgrade(const http::ResponseHead& head,
                                                       std::string_view protocol,
                                                       std::string_view fields) override;
  [[nodiscard]] Octets octets() noexcept override;
  void cancel() noexcept override;
  void close() noexcept override;

  void on_field(std::string_view name, std::string_view value) override;
  void on_head() override;
  void on_data(std::string_view octets) override;
  void on_end() override;
  void on_end_sent() override;
  void on_closed(http::Http2Error error) override;
  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& ended) noexcept override;
  [[nodiscard]] const http::Http2Fields* trailers() const noexcept override {
    return sink_ ? sink_->trailers() : nullptr;
  }

 private:
  [[nodiscard]] net::Task<void> wait_out_pause();
  [[nodiscard]] std::optional<http::Fault> read_head(ExchangeBuffers& buffers);
  [[nodiscard]] net::Task<void> refuse(http::Fault fault);
  [[nodiscard]] net::Task<net::ErrorCode> send_now();
  [[nodiscard]] std::size_t take_arrived(char* at, std::size_t size);
  void end_tunnel() noexcept;
  void forget_exchange() noexcept;
  void reset(http::Http2Error error) noexcept;

  Http2Connection& connection_;
  const std::int32_t id_;
  Http2StreamWatch watch_;
  std::optional<http::Http2RequestText> request_;  // set until read_head()
  std::string head_text_;                          // the HTTP/1.1 head to which the exchange's views point
  std::string arrived_;                            // octets of the body; the first `taken_` are used
  std::size_t taken_ = 0;
  Inbox inbox_;
  std::optional<BodySource> source_;
  http::Http2Fields fields_;
  std::optional<Http2Sink> sink_;
  std::optional<Http2Tunnel> tunnel_;  // set while the stream carries a WebSocket
  net::Readiness arrival_;  // notified when octets, the end of the body or the end of the stream arrive
  net::Notification room_;  // notified when the connection's output buffer has room
  Exchange* exchange_ = nullptr;
  AskService* ask_ = nullptr;
  DecisionPause::Waiter* pause_waiter_ = nullptr;
  std::string* out_ = nullptr;  // a buffer for an answer's text; owned by the exchange
  Ending ending_ = Ending::Close;
  bool head_arrived_ = false;
  bool ended_ = false;     // the client has ended the body
  bool answered_ = false;  // the end of the answer is in the output buffer
  bool serving_ = false;
  bool finished_ = false;
  // true if this process refused the request, because a new process decides on requests
  bool refused_ = false;
  bool closed_ = false;        // the codec has forgotten the stream
  bool disconnected_ = false;  // the client has reset the stream, or the connection has ended
};

}  // namespace weir::proxy
