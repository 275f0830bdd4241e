// Http2Sink sends one response on a stream of a client's HTTP/2 connection: the head with the first flush,
// then the body. The codec calls give() to fetch as much of the body as the client's flow-control windows and
// the connection's output buffer permit. Http2Stream owns the sink.
#pragma once

#include "weir/http/http2_fields.hpp"
#include "weir/net/signal.hpp"
#include "weir/proxy/body_sink.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::proxy {

class Http2Connection;

class Http2Sink final : public BodySink {
 public:
  // `fields`: the head. `length`: the size of the body in octets, if known; the last octet then ends the
  // stream. `disconnected`: true once the client has reset the stream. All references must outlive the sink.
  Http2Sink(Http2Connection& connection, std::int32_t id, const http::Http2Fields& fields,
            std::optional<std::uint64_t> length, const bool& disconnected);

  void add(std::string_view piece) override;
  [[nodiscard]] bool takes_trailers() const noexcept override { return true; }
  void end(std::string_view trailers) override;
  [[nodiscard]] bool is_full() const noexcept override { return !piece_.empty(); }
  [[nodiscard]] bool is_stuck() const noexcept override { return holds_partial_piece_; }
  // Returns true if the codec has taken all pieces and, after end(), the end of the answer is in the output
  // buffer.
  [[nodiscard]] bool is_flushed() const noexcept { return piece_.empty() && (!ended_ || end_sent_); }
  [[nodiscard]] bool flush(net::ErrorCode& ec) override;
  [[nodiscard]] net::Task<net::ErrorCode> wait_for_room() override;
  [[nodiscard]] bool is_untouched() const noexcept override { return !begun_; }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return sent_; }

  // Moves octets of the body to the codec, as http::Http2StreamEvents::give() describes.
  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& ended) noexcept;
  // Returns the trailers to send; null: none (http::Http2StreamEvents::trailers).
  [[nodiscard]] const http::Http2Fields* trailers() const noexcept {
    return trailers_.size() != 0 ? &trailers_ : nullptr;
  }
  // Must be called when the end of the answer is in the connection's output buffer.
  void note_end() noexcept {
    end_sent_ = true;
    room_.notify();
  }
  // wake() and cancel() end the wait for room. After wake(), the sink checks whether the client has gone.
  // After cancel(), the wait returns operation_aborted.
  void wake() noexcept { room_.notify(); }
  void cancel() noexcept { room_.cancel(); }

 private:
  Http2Connection& connection_;
  const std::int32_t id_;
  const http::Http2Fields& fields_;
  std::optional<std::uint64_t> left_;  // octets of the body that are still to come, if known
  const bool& disconnected_;
  net::Notification room_;
  std::string_view piece_;
  http::Http2Fields trailers_;
  std::uint64_t sent_ = 0;
  bool begun_ = false;  // the codec has the head
  bool holds_partial_piece_ = false;
  bool ended_ = false;
  bool end_sent_ = false;
};

}  // namespace weir::proxy
