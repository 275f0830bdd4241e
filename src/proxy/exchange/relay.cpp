#include "weir/proxy/relay.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>

namespace weir::proxy {

namespace {

// Pieces up to this size are copied behind what is to be sent, so that a head and a small body, or many small
// chunks, leave in one call; larger ones are sent from where they stand.
constexpr std::size_t kCopied = 4 << 10;

}  // namespace

BodySource::Status BodySource::accept(std::string_view piece) {
  received_ += piece.size();
  return received_ > most_ ? Status::TooLarge : Status::Piece;
}

BodySource::Status BodySource::take_chunk(std::string_view& piece) {
  const auto eaten = decoder_.next(inbox_.unread());
  inbox_.use(eaten.used);
  piece = eaten.data;
  switch (eaten.status) {
    case http::ChunkDecoder::Status::Data:
      return accept(piece);
    case http::ChunkDecoder::Status::Done:
      complete_ = true;
      return Status::End;
    case http::ChunkDecoder::Status::NeedMore:
      return ended_ ? Status::Cut : Status::NeedBytes;
    case http::ChunkDecoder::Status::Bad:
      break;
  }
  return Status::Bad;
}

BodySource::Status BodySource::take(std::string_view& piece) {
  if (!again_.empty()) {
    piece = std::exchange(again_, std::exchange(last_again_, {}));
    return Status::Piece;
  }
  if (framing_ == http::Framing::Chunked) return take_chunk(piece);
  const bool to_the_end = framing_ == http::Framing::UntilClose;
  if (framing_ == http::Framing::None || (!to_the_end && left_ == 0) ||
      (to_the_end && ended_ && inbox_.empty())) {
    complete_ = true;
    return Status::End;
  }
  if (inbox_.empty()) return ended_ ? Status::Cut : Status::NeedBytes;
  const auto unread = inbox_.unread();
  piece = to_the_end
              ? unread
              : unread.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, unread.size())));
  inbox_.use(piece.size());
  if (!to_the_end) left_ -= piece.size();
  return accept(piece);
}

BodySource::Status BodySource::drop() {
  std::string_view piece;
  auto status = take(piece);
  while (status == Status::Piece) status = take(piece);
  return status;
}

net::Task<net::ErrorCode> BodySource::fill() {
  net::ErrorCode ec;
  char* at = inbox_.space();
  const auto count = co_await stream_.read_some(at, inbox_.room(), ec);
  inbox_.received(count);
  filled_ += count;
  if (ec == net::asio::error::eof || ec == net::asio::error::connection_reset) {
    // A reset says that bytes may be missing, so it never completes a body that ends with the connection.
    ended_ = ec == net::asio::error::eof || framing_ != http::Framing::UntilClose;
    if (ended_) ec = {};
  }
  co_return ec;
}

// The source has said its last word.
bool Relay::finished() const noexcept {
  return status_ != BodySource::Status::Piece && status_ != BodySource::Status::NeedBytes;
}

void Relay::show(std::string_view piece) {
  if (status_ == BodySource::Status::Piece) watch_->see(piece);
  if (status_ == BodySource::Status::End) watch_->complete();
}

// Fills out_ and piece_ with what is at hand.
void Relay::gather() {
  const bool chunked = framing_ == http::Framing::Chunked;
  while (out_.size() < 4 * kCopied && !finished()) {
    std::string_view piece;
    status_ = source_.take(piece);
    if (watch_ != nullptr) show(piece);
    if (status_ == BodySource::Status::End && chunked) out_ += http::kLastChunk;
    if (status_ != BodySource::Status::Piece) return;
    if (chunked) http::append_chunk_size(out_, piece.size());
    if (piece.size() > kCopied) {
      piece_ = piece;
      crlf_due_ = chunked;
      return;
    }
    out_ += piece;
    if (chunked) out_ += "\r\n";
  }
}

// True when all of out_ and piece_ was sent.
bool Relay::flush(net::ErrorCode& ec) {
  const auto rest = std::string_view(out_).substr(out_sent_);
  if (!rest.empty() || !piece_.empty()) {
    const auto sent = begun_ ? sink_.try_rest(rest, piece_, ec) : sink_.try_write(rest, piece_, ec);
    sent_ += sent;
    begun_ = sent < rest.size() + piece_.size();
    const auto of_out = std::min(sent, rest.size());
    out_sent_ += of_out;
    piece_.remove_prefix(sent - of_out);
    if (out_sent_ < out_.size() || !piece_.empty()) return false;
  }
  out_.assign(crlf_due_ ? "\r\n" : "");  // the end of a chunk goes out with what comes next
  out_sent_ = 0;
  crlf_due_ = false;
  return true;
}

Relay::Need Relay::advance() {
  net::ErrorCode ec;
  for (;;) {
    const bool stuck = out_sent_ > 0 || !piece_.empty();
    if (!stuck) gather();
    // A body that is faulty from the start needs no head before it: the caller can still say what it is.
    if (untouched() && source_.received() == 0 && finished() && status_ != BodySource::Status::End)
      return Need::Source;
    if (!flush(ec)) return ec ? Need::SinkBroken : Need::Room;
    if (status_ == BodySource::Status::End) return Need::Nothing;
    if (status_ == BodySource::Status::NeedBytes) return Need::Bytes;
    if (finished()) return Need::Source;
  }
}

net::Task<net::ErrorCode> Relay::wait(Need need) {
  if (need == Need::Bytes) co_return co_await source_.fill();
  co_return co_await sink_.wait_writable();
}

}  // namespace weir::proxy
