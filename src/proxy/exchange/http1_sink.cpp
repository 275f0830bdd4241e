#include "weir/proxy/http1_sink.hpp"

#include "weir/http/chunked.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

// The sink copies pieces of at most this size into the output buffer. So one system call can send a head with
// a small body, or many small chunks. The sink sends larger pieces without a copy.
constexpr std::size_t kCopied = 4 << 10;

}  // namespace

void Http1Sink::add(std::string_view piece) {
  if (chunked_) http::append_chunk_size(out_, piece.size());
  if (piece.size() > kCopied) {
    piece_ = piece;
    crlf_due_ = chunked_;
    return;
  }
  out_ += piece;
  if (chunked_) out_ += "\r\n";
}

void Http1Sink::end(std::string_view /*trailers*/) {
  if (chunked_) out_ += http::kLastChunk;
}

bool Http1Sink::is_full() const noexcept {
  return !piece_.empty() || out_.size() >= 4 * kCopied;
}

bool Http1Sink::flush(net::ErrorCode& ec) {
  const auto rest = std::string_view(out_).substr(out_sent_);
  if (!rest.empty() || !piece_.empty()) {
    const auto sent = begun_ ? stream_.try_rest(rest, piece_, ec) : stream_.try_write(rest, piece_, ec);
    sent_ += sent;
    begun_ = sent < rest.size() + piece_.size();
    const auto of_out = std::min(sent, rest.size());
    out_sent_ += of_out;
    piece_.remove_prefix(sent - of_out);
    if (out_sent_ < out_.size() || !piece_.empty()) return false;
  }
  out_.clear();
  if (crlf_due_) out_ += "\r\n";  // CRLF that ends the previous chunk
  out_sent_ = 0;
  crlf_due_ = false;
  return true;
}

net::Task<net::ErrorCode> Http1Sink::wait_for_room() {
  co_return co_await stream_.wait_writable();
}

}  // namespace weir::proxy
