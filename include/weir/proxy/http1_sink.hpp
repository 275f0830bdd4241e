// Http1Sink sends a body with HTTP/1.1 framing to a client or a server. A sink belongs to one message; only
// the thread of its connection uses it.
#pragma once

#include "weir/http/head.hpp"
#include "weir/net/byte_stream.hpp"
#include "weir/proxy/body_sink.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::proxy {

class Http1Sink final : public BodySink {
 public:
  // `out`: bytes to send before the body, usually a head. The sink appends the body's framing to `out`.
  // `stream` and `out` must outlive the sink.
  Http1Sink(net::ByteStream& stream, http::Framing framing, std::string& out) noexcept
      : stream_(stream), out_(out), chunked_(framing == http::Framing::Chunked) {}

  // Must be called before flush() if `out` is the rest of a message whose beginning was already sent.
  void goes_on() noexcept { begun_ = true; }

  void add(std::string_view piece) override;
  // weir sends no trailers over HTTP/1.1.
  [[nodiscard]] bool takes_trailers() const noexcept override { return false; }
  void end(std::string_view trailers) override;
  [[nodiscard]] bool is_full() const noexcept override;
  [[nodiscard]] bool is_stuck() const noexcept override { return out_sent_ > 0 || !piece_.empty(); }
  [[nodiscard]] bool flush(net::ErrorCode& ec) override;
  [[nodiscard]] net::Task<net::ErrorCode> wait_for_room() override;
  [[nodiscard]] bool is_untouched() const noexcept override { return sent_ == 0 && !stream_.owes_write(); }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return sent_; }

 private:
  net::ByteStream& stream_;
  std::string& out_;
  std::size_t out_sent_ = 0;
  std::string_view piece_;  // sent after out_; points to memory of the body's source
  std::uint64_t sent_ = 0;
  const bool chunked_;
  bool crlf_due_ = false;  // true: piece_ ends a chunk, so a CRLF must follow it
  bool begun_ = false;     // true: the beginning of the message was sent
};

}  // namespace weir::proxy
