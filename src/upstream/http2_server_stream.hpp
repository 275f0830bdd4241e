// One request to an HTTP/2 server and its response. A Lease or a probe owns the stream; only the thread of
// its connection uses it. For the caller, the stream behaves like an HTTP/1.1 connection for one request: the
// caller writes and reads HTTP/1.1 text. So the same code handles and checks both versions of HTTP.
//
// The codec calls the functions of Http2StreamEvents while it reads or writes. These functions resume no
// coroutine at once, because a coroutine may call the codec, and the codec must not run within itself.
#pragma once

#include "weir/http/chunked.hpp"
#include "weir/http/http2_fields.hpp"
#include "weir/http/http2_session.hpp"
#include "weir/net/byte_stream.hpp"
#include "weir/net/signal.hpp"
#include "weir/upstream/pool.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::upstream {

class Http2ServerConnection;

class Http2ServerStream final : public net::ByteStream, private http::Http2StreamEvents {
 public:
  // How many octets of a response the server may send before the caller reads them.
  static constexpr std::uint32_t kWindow = 64 << 10;
  // How many octets of a response's head are stored. The caller's own bound must not be larger.
  static constexpr std::uint32_t kMostHead = 1 << 20;

  explicit Http2ServerStream(std::shared_ptr<Http2ServerConnection> connection);
  // Resets the HTTP/2 stream unless the request and the response are complete.
  ~Http2ServerStream();

  [[nodiscard]] const std::shared_ptr<Http2ServerConnection>& connection() const noexcept {
    return connection_;
  }
  // Waits until the connection is open, has failed, or turns out to use HTTP/1.1. Returns the error if the
  // connection failed, otherwise no error.
  [[nodiscard]] net::Task<net::ErrorCode> connected();
  // Returns true if the request was given to the codec.
  [[nodiscard]] bool is_sent() const noexcept { return id_.has_value(); }
  // Returns true if the request was sent and its stream has not ended.
  [[nodiscard]] bool is_open() const noexcept { return id_ && !closed_; }
  // Returns true if the connection was idle when this request was sent, and nothing has arrived since. The
  // server may then have closed the connection before the request arrived. In a burst of requests on an idle
  // connection, this holds for each request that was sent before anything arrived.
  [[nodiscard]] bool may_have_met_idle_close() const noexcept;
  // Returns how the stream ended before the end of the response. REQUIRES that the stream ended early.
  [[nodiscard]] ExchangeFailure broke_by() const noexcept {
    return refused_  ? ExchangeFailure::Refusal
           : closed_ ? ExchangeFailure::Reset
                     : ExchangeFailure::Connection;
  }

  [[nodiscard]] std::size_t try_read(char* at, std::size_t size, net::ErrorCode& ec) override;
  [[nodiscard]] net::Task<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec) override;
  // The first call sends the whole head, which `first` must contain, and the beginning of the body. Later
  // calls send more of the body, as try_rest() does.
  [[nodiscard]] std::size_t try_write(std::string_view first, std::string_view second,
                                      net::ErrorCode& ec) override;
  // Sends more of the body, with its framing.
  [[nodiscard]] std::size_t try_rest(std::string_view first, std::string_view second,
                                     net::ErrorCode& ec) override;
  [[nodiscard]] bool owes_write() const noexcept override { return false; }
  [[nodiscard]] net::Port::Wait wait_readable() noexcept override;
  [[nodiscard]] net::Port::Wait wait_writable() noexcept override;
  void cancel() noexcept override;

  // Must be called when the state of the connection has changed.
  void note_change() noexcept;

 private:
  // How many octets of a request's body may wait for the server's flow-control window.
  static constexpr std::size_t kMostBody = 32 << 10;

  void on_field(std::string_view name, std::string_view value) override;
  void on_head() override;
  void on_data(std::string_view octets) override;
  void on_end() override;
  void on_end_sent() override {}
  void on_closed(http::Http2Error error) override;
  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& ended) noexcept override;
  [[nodiscard]] const http::Http2Fields* trailers() const noexcept override { return nullptr; }

  [[nodiscard]] bool is_broken() const noexcept;
  [[nodiscard]] bool is_readable() const noexcept;
  [[nodiscard]] std::size_t add_body(std::string_view text);
  template <class Use>
  void use_codec(Use use);

  const std::shared_ptr<Http2ServerConnection> connection_;
  std::optional<std::int32_t> id_;  // set once the request was given to the codec
  // The connection's arrivals() and may_meet_idle_close() when the request was sent.
  std::uint64_t arrivals_before_ = 0;
  bool was_idle_ = false;
  net::Readiness readable_;
  net::Readiness writable_;
  std::optional<http::Http2ResponseText> response_;
  std::string text_;  // the response as HTTP/1.1 text; the first `taken_` octets were read
  std::size_t taken_ = 0;
  // body octets of the response that have arrived but were not returned to the server's flow-control window
  std::size_t unconsumed_ = 0;
  std::string body_;  // octets of the request's body; the codec has the first `given_`
  std::size_t given_ = 0;
  // octets of the request's body that the caller has not written yet; nullopt: the body is chunked
  std::optional<std::uint64_t> left_;
  http::ChunkDecoder decoder_;
  bool body_ended_ = false;
  bool ended_ = false;           // the server has ended its response
  bool closed_ = false;          // the codec has forgotten the stream
  bool refused_ = false;         // the server has not processed the request
  bool response_begun_ = false;  // a part of the response has arrived
};

}  // namespace weir::upstream
