// The chunked transfer coding (RFC 9112 §7.1), taken apart as the bytes come.
//
// Our own, although Beast has one: Beast's continues only from a head that it read itself, wants a chunk's
// line whole in the buffer and merges trailers into the head. A relay wants a machine that eats any piece and
// keeps no bytes. Extensions and trailers are dropped, and bounded: by 16 KiB more than the data before them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

class ChunkDecoder {
 public:
  enum class Status : std::uint8_t {
    NeedMore,  // everything was eaten
    Data,      // `data` is a piece of the body; call again with the rest
    Done,      // the last chunk and its trailers are over; what is left belongs to the next message
    Bad,       // not a chunked body
  };
  struct Piece {
    Status status;
    std::string_view data;  // a view into the input
    std::size_t used;       // bytes eaten, `data` included
  };
  // Some servers pad a chunk's size with blanks, and what they say in extensions and trailers goes no
  // further. Of a client each is one more spelling on which readers differ, so these have to be what RFC 9112
  // §7.1.1 and §7.1.2 say.
  enum class Sender : std::uint8_t { Client, Server };
  explicit ChunkDecoder(Sender sender = Sender::Client) noexcept : sender_(sender) {}

  [[nodiscard]] Piece next(std::string_view input) noexcept;
  [[nodiscard]] bool done() const noexcept { return state_ == State::Done; }

 private:
  enum class State : std::uint8_t {
    SizeStart,
    Size,
    Blank,
    Extension,  // a server's, whatever it is
    ExtensionStart,
    ExtensionName,
    NameOver,  // blanks behind it
    ValueStart,
    Value,
    Quoted,
    Escaped,
    QuoteOver,  // just behind it
    ValueOver,  // blanks behind it
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    Trailer,
    TrailerLf,
    LastLf,
    Done
  };

  [[nodiscard]] bool step(char c) noexcept;
  [[nodiscard]] bool step_in_extension(char c) noexcept;
  [[nodiscard]] bool step_in_trailer(char c) noexcept;
  [[nodiscard]] bool digit(char c) noexcept;
  [[nodiscard]] bool spare(char c) noexcept;

  Sender sender_;
  State state_ = State::SizeStart;
  std::uint64_t left_ = 0;   // of the chunk
  std::uint32_t spare_ = 0;  // bytes of extensions, trailers and leading zeros, less those of data
};

// Appends the line that opens a chunk of `size` bytes; its data is to be followed by CRLF.
void append_chunk_size(std::string& out, std::uint64_t size);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace weir::http
