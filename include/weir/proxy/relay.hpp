// Bodies on their way from one stream to another: in pieces, as they come, never whole in memory. A sink that
// does not take more stops the reading from the source: back-pressure.
#pragma once

#include "weir/http/chunked.hpp"
#include "weir/http/head.hpp"
#include "weir/net/stream.hpp"
#include "weir/proxy/body_observer.hpp"
#include "weir/proxy/body_sink.hpp"
#include "weir/proxy/buffer.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace weir::proxy {

// A body as it is received. The inbox may hold its beginning already, and what follows it.
class BodySource {
 public:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  // `sender`: whose chunks they are, if it comes in chunks.
  BodySource(net::Stream& stream, Inbox& inbox, http::Framing framing, std::uint64_t length,
             std::uint64_t most = kUnbounded,
             http::ChunkDecoder::Sender sender = http::ChunkDecoder::Sender::Client)
      : stream_(stream), inbox_(inbox), framing_(framing), decoder_(sender), left_(length), most_(most) {}

  enum class Status : std::uint8_t {
    Piece,      // `piece` is the next part; valid until fill()
    End,        // the body is complete
    NeedBytes,  // nothing at hand: fill()
    Cut,        // the stream ended before the body did
    Bad,        // not a chunked body
    TooLarge,   // more than `most` bytes
  };
  [[nodiscard]] Status take(std::string_view& piece);

  // Another bound.
  void allow(std::uint64_t most) noexcept { most_ = most; }

  // Takes what is at hand, and drops it: NeedBytes where there is more to come.
  [[nodiscard]] Status drop();

  // Has take() give once more what was taken already, before what follows it: text that stands still until
  // then, and after it `last`, the piece that was taken last. Both take the place of what was put back
  // before.
  void put_back(std::string_view taken, std::string_view last = {}) noexcept {
    again_ = taken.empty() ? last : taken;
    last_again_ = taken.empty() ? std::string_view{} : last;
  }

  // Of a body of known length: what take() can give without fill(), in one piece, and perhaps what follows
  // the body.
  [[nodiscard]] std::string_view at_hand() const noexcept {
    return again_.empty() ? inbox_.unread() : again_;
  }

  // Waits for bytes. The stream's end is no error: take() judges it.
  [[nodiscard]] net::Task<net::ErrorCode> fill();

  // Bytes of the body, and bytes that fill() took, framing and what follows the body included.
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  [[nodiscard]] std::uint64_t filled() const noexcept { return filled_; }
  // All of it was received, and taken at least once.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  [[nodiscard]] Status take_chunk(std::string_view& piece);
  [[nodiscard]] Status accept(std::string_view piece);

  net::Stream& stream_;
  Inbox& inbox_;
  http::Framing framing_;
  http::ChunkDecoder decoder_;
  std::uint64_t left_;
  std::uint64_t most_;
  std::uint64_t received_ = 0;
  std::uint64_t filled_ = 0;
  std::string_view again_;       // put back
  std::string_view last_again_;  // comes after it
  bool ended_ = false;
  bool complete_ = false;
};

// Moves a body from a source to a sink, in the sink's framing.
class Relay {
 public:
  // `watch`: sees what passes; null: nobody does. All outlive the relay.
  Relay(BodySource& source, BodySink& sink, BodyObserver* watch = nullptr)
      : source_(source), sink_(sink), watch_(watch) {}

  enum class Need : std::uint8_t {
    Nothing,     // all was sent
    Bytes,       // wait for the source
    Room,        // wait for the sink
    SinkBroken,  // the sink takes no more
    Source,      // the source failed: status()
  };
  // After so many waits whoever relays lets others have their turn: they may all have been over at once.
  static constexpr unsigned kPiecesInTurn = 16;
  // Moves what can be moved without waiting.
  [[nodiscard]] Need advance();
  // Waits for what advance() needs.
  [[nodiscard]] net::Task<net::ErrorCode> wait(Need need);

  // The source's last word, after Need::Source.
  [[nodiscard]] BodySource::Status status() const noexcept { return status_; }

 private:
  [[nodiscard]] bool finished() const noexcept;
  void gather();
  void show(std::string_view piece);

  BodySource& source_;
  BodySink& sink_;
  BodyObserver* const watch_;
  BodySource::Status status_ = BodySource::Status::Piece;
};

}  // namespace weir::proxy
