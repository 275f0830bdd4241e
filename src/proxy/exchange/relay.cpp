#include "weir/proxy/relay.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>

namespace weir::proxy {

BodySource::Status BodySource::accept(std::string_view piece) {
  received_ += piece.size();
  return received_ > most_ ? Status::TooLarge : Status::Piece;
}

BodySource::Status BodySource::take_chunk(std::string_view& piece) {
  const auto decoded = decoder_.next(inbox_.unread(), keeps_trailers_ ? &trailers_ : nullptr);
  inbox_.use(decoded.used);
  piece = decoded.data;
  switch (decoded.status) {
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
  inbox_.grow();
  char* at = inbox_.space();
  const auto count = co_await stream_.read_some(at, inbox_.room(), ec);
  inbox_.received(count);
  filled_ += count;
  if (ec == net::asio::error::eof || ec == net::asio::error::connection_reset) {
    // A reset can lose bytes of the body. The body's length or chunks show that bytes are missing. A body
    // that lasts until the connection closes (UntilClose) has neither, so a reset is an error there.
    ended_ = ec == net::asio::error::eof || framing_ != http::Framing::UntilClose;
    if (ended_) ec = {};
  }
  co_return ec;
}

// Returns true if the source has no more pieces, because the body has ended or is faulty.
bool Relay::finished() const noexcept {
  return status_ != BodySource::Status::Piece && status_ != BodySource::Status::NeedBytes;
}

void Relay::notify_observer(std::string_view piece) {
  if (status_ == BodySource::Status::Piece) observer_->see(piece);
  if (status_ == BodySource::Status::End) observer_->complete(source_.trailers());
}

// Returns to the source the part of the piece that the pacer or the gate does not admit. The gate gets only
// octets that the pacer admits, because the gate counts what it admits.
void Relay::hold_back(std::string_view& piece) {
  auto admitted = pacer_ != nullptr && !piece.empty() ? pacer_->admit(piece.size()) : piece.size();
  paced_ = admitted == 0 && !piece.empty();
  if (gate_ != nullptr && !paced_) {
    const auto through = gate_->admit(piece.substr(0, admitted));
    held_ = through < admitted;
    admitted = through;
  }
  if (pacer_ != nullptr) pacer_->passed(admitted);
  if (admitted < piece.size()) source_.give_back(piece.substr(admitted));
  piece = piece.substr(0, admitted);
}

// Moves all available pieces to the sink, until the sink is full or a piece is held back.
void Relay::gather() {
  held_ = paced_ = false;
  while (!held_ && !paced_ && !finished() && !sink_.is_full()) {
    std::string_view piece;
    status_ = source_.take(piece);
    if ((gate_ != nullptr || pacer_ != nullptr) && status_ == BodySource::Status::Piece) hold_back(piece);
    if (observer_ != nullptr) notify_observer(piece);
    if (status_ == BodySource::Status::End) sink_.end(source_.trailers());
    if (status_ != BodySource::Status::Piece) return;
    if (!piece.empty()) sink_.add(piece);
  }
}

Relay::Need Relay::advance() {
  net::ErrorCode ec;
  for (;;) {
    if (!sink_.is_stuck()) gather();
    // If the body is faulty from its first octet, sends no head, so that the caller can answer with an error
    // instead.
    if (finished() && status_ != BodySource::Status::End && source_.received() == 0 && sink_.is_untouched())
      return Need::Source;
    if (!sink_.flush(ec)) return ec ? Need::SinkBroken : Need::Room;
    if (status_ == BodySource::Status::End) {
      source_.shrink();
      return Need::Nothing;
    }
    if (status_ == BodySource::Status::NeedBytes) return Need::Bytes;
    if (held_) return Need::Gate;
    if (paced_) return Need::Pace;
    if (finished()) return Need::Source;
  }
}

net::Task<net::ErrorCode> Relay::wait(Need need) {
  return need == Need::Bytes ? source_.fill() : sink_.wait_for_room();
}

}  // namespace weir::proxy
