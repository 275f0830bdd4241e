// Decodes the chunked transfer coding (RFC 9112 §7.1) piece by piece. Pure.
//
// The decoder accepts input in pieces of any size and stores no bytes, as a proxy needs. Beast's decoder is
// unsuitable: it needs a head that Beast parsed and the whole line of a chunk in its buffer, and it merges
// trailers into the head.
//
// The decoder drops extensions. It also drops trailers, unless the caller passes a string for them.
// Extensions, trailers and leading zeros of chunk sizes together may be at most 16 KiB longer than the data
// before them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::http {

class ChunkDecoder {
 public:
  enum class Status : std::uint8_t {
    NeedMore,  // all input was used; call again with more input
    Data,      // `data` is a piece of the body; call again with the remaining input
    Done,      // the last chunk and its trailers were read; the remaining input belongs to the next message
    Bad,       // the body is not valid
  };
  struct Piece {
    Status status;
    std::string_view data;  // a view into the input
    std::size_t used;       // bytes used, including `data`
  };
  // The sender of the body. A server may pad a chunk's size with blanks, and write anything in extensions and
  // trailers. A client must follow RFC 9112 §7.1.1 and §7.1.2, because a server behind weir could otherwise
  // read the body differently.
  enum class Sender : std::uint8_t { Client, Server };
  explicit ChunkDecoder(Sender sender = Sender::Client) noexcept : sender_(sender) {}

  // Decodes the next piece of the body. If `trailers` is not null, appends the octets of the trailer section
  // to `trailers`.
  [[nodiscard]] Piece next(std::string_view input, std::string* trailers = nullptr);
  [[nodiscard]] bool done() const noexcept { return state_ == State::Done; }

 private:
  enum class State : std::uint8_t {
    SizeStart,
    Size,
    Blank,
    Extension,  // an extension in a body of a server, with any content
    ExtensionStart,
    ExtensionName,
    NameOver,  // blanks after the name of an extension
    ValueStart,
    Value,
    Quoted,
    Escaped,
    QuoteOver,  // the octet after the closing quote of a value
    ValueOver,  // blanks after the value of an extension
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
  [[nodiscard]] bool is_in_trailers() const noexcept {
    return state_ == State::TrailerStart || state_ == State::TrailerName || state_ == State::Trailer ||
           state_ == State::TrailerLf;
  }
  [[nodiscard]] bool digit(char c) noexcept;
  [[nodiscard]] bool spare(char c) noexcept;

  Sender sender_;
  State state_ = State::SizeStart;
  std::uint64_t left_ = 0;  // remaining bytes of the present chunk
  // The bytes of extensions, trailers and leading zeros of chunk sizes, minus the bytes of data so far; at
  // least 0.
  std::uint32_t spare_ = 0;
};

// Appends the line that begins a chunk of `size` bytes. The caller must append the data and a CRLF.
void append_chunk_size(std::string& out, std::uint64_t size);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace weir::http
