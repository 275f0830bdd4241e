// Relays bodies from one stream to another in pieces, never whole in memory. While the sink accepts no more,
// the relay does not read from the source (back-pressure). A source and a relay belong to one body; only the
// thread of its streams uses them.
#pragma once

#include "weir/http/chunked.hpp"
#include "weir/http/head.hpp"
#include "weir/net/byte_reader.hpp"
#include "weir/proxy/body_gate.hpp"
#include "weir/proxy/body_observer.hpp"
#include "weir/proxy/body_sink.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/pacer.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace weir::proxy {

// Reads a body from a stream. The inbox may already hold the beginning of the body, or the whole body and
// bytes after it.
class BodySource {
 public:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  // `stream` and `inbox` must outlive the source. `length`: the Content-Length, in bytes, if the body has
  // one. `most`: the bound on the body, in bytes. `sender`: whether a client or a server sends a chunked
  // body.
  BodySource(net::ByteReader& stream, Inbox& inbox, http::Framing framing, std::uint64_t length,
             std::uint64_t most = kUnbounded,
             http::ChunkDecoder::Sender sender = http::ChunkDecoder::Sender::Client)
      : stream_(stream), inbox_(inbox), framing_(framing), decoder_(sender), left_(length), most_(most) {}

  enum class Status : std::uint8_t {
    Piece,      // `piece` is the next part; valid until fill()
    End,        // the body is complete
    NeedBytes,  // no bytes are available: call fill()
    Cut,        // the stream ended before the body did
    Bad,        // the chunked framing is invalid
    TooLarge,   // the body has more than `most` bytes
  };
  // Takes the next piece without waiting.
  [[nodiscard]] Status take(std::string_view& piece);

  // Keeps the trailers of a chunked body for trailers(). Must be called before take().
  void keep_trailers() noexcept { keeps_trailers_ = true; }
  // Returns the lines of the trailer section as received. Empty until the body is complete. The decoder
  // rejects a body whose trailers, chunk extensions and leading zeros of chunk sizes together are more than
  // 16 KiB longer than the data before them.
  [[nodiscard]] std::string_view trailers() const noexcept { return trailers_; }

  // Sets the bound on the body to `most` bytes.
  void allow(std::uint64_t most) noexcept { most_ = most; }

  // Takes and discards all available bytes. Returns NeedBytes if the body continues.
  [[nodiscard]] Status drop();

  // Makes take() return bytes a second time: first `taken`, then `last`. `taken`: bytes that the caller took
  // earlier and has copied into its own memory. They must stay there until take() has returned them again.
  // `last`: the piece that take() returned last. Replaces the bytes of an earlier put_back().
  void put_back(std::string_view taken, std::string_view last = {}) noexcept {
    again_ = taken.empty() ? last : taken;
    last_again_ = taken.empty() ? std::string_view{} : last;
  }

  // Makes take() return `rest` next. `rest` must be the end of the piece that take() returned last.
  void give_back(std::string_view rest) noexcept {
    last_again_ = again_;
    again_ = rest;
  }

  // Returns what take() can return without fill(), in one piece. The view may extend beyond the end of the
  // body. REQUIRES a body of known length.
  [[nodiscard]] std::string_view at_hand() const noexcept {
    return again_.empty() ? inbox_.unread() : again_;
  }

  // Waits for bytes. The end of the stream is not an error here: take() reports Cut if the body is
  // incomplete.
  [[nodiscard]] net::Task<net::ErrorCode> fill();

  // received() returns the number of body bytes. filled() returns the number of bytes that fill() read,
  // including framing and bytes after the body.
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  [[nodiscard]] std::uint64_t filled() const noexcept { return filled_; }
  // Returns the large block of the inbox to its pool, unless it has bytes after the body. Must be called only
  // if nobody uses the pieces that take() returned.
  void shrink() noexcept { inbox_.shrink(); }
  // Returns true if the whole body has arrived and take() has returned all of it at least once.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  [[nodiscard]] Status take_chunk(std::string_view& piece);
  [[nodiscard]] Status accept(std::string_view piece);

  net::ByteReader& stream_;
  Inbox& inbox_;
  http::Framing framing_;
  http::ChunkDecoder decoder_;
  std::uint64_t left_;  // for Framing::Length: octets of the body that take() has not returned yet
  std::uint64_t most_;
  std::uint64_t received_ = 0;
  std::uint64_t filled_ = 0;
  std::string_view again_;       // stored by put_back() or give_back(); take() returns it next
  std::string_view last_again_;  // take() returns it after again_
  std::string trailers_;
  bool keeps_trailers_ = false;
  bool ended_ = false;  // true: no more octets will arrive
  bool complete_ = false;
};

// Moves a body from a source to a sink. The sink frames the body.
class Relay {
 public:
  // `observer` sees each piece of the body, and may be null. `gate` and `pacer` may hold octets back; each
  // may be null. All arguments must outlive the relay.
  Relay(BodySource& source, BodySink& sink, BodyObserver* observer = nullptr, BodyGate* gate = nullptr,
        Pacer* pacer = nullptr)
      : source_(source), sink_(sink), observer_(observer), gate_(gate), pacer_(pacer) {
    if (sink.takes_trailers() || (observer != nullptr && observer->wants_trailers())) source.keep_trailers();
  }

  enum class Need : std::uint8_t {
    Nothing,     // the whole body was sent
    Bytes,       // wait for the source
    Room,        // wait for the sink
    Gate,        // wait until the gate may admit more
    Pace,        // wait until the pacer may admit more
    SinkBroken,  // sending failed
    Source,      // the source failed: see status()
  };
  // Returns true if the relay can continue after a wait for `need`.
  [[nodiscard]] static bool is_wait(Need need) noexcept {
    return need != Need::Nothing && need != Need::SinkBroken && need != Need::Source;
  }
  // The caller must yield to other tasks after this number of waits. If every wait ends at once, the caller
  // would otherwise never yield.
  static constexpr unsigned kPiecesInTurn = 16;
  // Moves all bytes that can be moved without waiting.
  [[nodiscard]] Need advance();
  // Waits until advance() can continue. REQUIRES that `need` is Bytes or Room.
  [[nodiscard]] net::Task<net::ErrorCode> wait(Need need);

  // Returns the source's last status. Meaningful after Need::Source.
  [[nodiscard]] BodySource::Status status() const noexcept { return status_; }

 private:
  [[nodiscard]] bool finished() const noexcept;
  void hold_back(std::string_view& piece);
  void gather();
  void notify_observer(std::string_view piece);

  BodySource& source_;
  BodySink& sink_;
  BodyObserver* const observer_;
  BodyGate* const gate_;
  Pacer* const pacer_;
  bool held_ = false;   // true: the gate holds octets back
  bool paced_ = false;  // true: the pacer holds octets back
  BodySource::Status status_ = BodySource::Status::Piece;
};

}  // namespace weir::proxy
