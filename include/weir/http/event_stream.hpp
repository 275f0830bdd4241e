// Finds the records in a stream: the data of server-sent events (WHATWG HTML §9.2), or the lines of JSON
// Lines.
//
// Pure. The decoder accepts input in pieces of any size and stores no octets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::http {

enum class StreamFormat : std::uint8_t {
  Events,  // text/event-stream
  Lines,   // application/x-ndjson, application/ndjson, application/jsonl
};
// Returns the format that a Content-Type names; nullopt if the body is no stream of records. Ignores
// parameters and the case of letters.
[[nodiscard]] std::optional<StreamFormat> stream_format(std::string_view content_type) noexcept;

class RecordDecoder {
 public:
  enum class Status : std::uint8_t {
    NeedMore,  // all input was used; call again with more input
    Data,      // `data` is a piece of a record; call again with the remaining input
    End,       // the record is complete; call again with the remaining input
  };
  struct Piece {
    Status status;
    std::string_view data;  // a view into the input, or a line break between two data lines of an event
    std::size_t used;       // octets used, including `data`
  };
  explicit RecordDecoder(StreamFormat format) noexcept
      : format_(format), state_(format == StreamFormat::Events ? State::Mark : State::Value) {}

  // Decodes the next piece. An event without data fields is no record, but an empty line between JSON lines
  // is a record without octets. If the stream ends within a record, the decoder reports no End for this
  // record.
  [[nodiscard]] Piece next(std::string_view input) noexcept;

 private:
  // The position of the next octet within a line of an event stream.
  enum class State : std::uint8_t {
    Mark,   // in a byte order mark, or at the beginning of the first line
    Name,   // in the name of a field, which may be "data"
    Blank,  // after the colon of a data field; one blank may follow
    Value,  // in the value of a data field; in JSON Lines: in a line
    Skip,   // in a comment, or in a field other than data
  };

  [[nodiscard]] Piece next_line(std::string_view input) const noexcept;
  [[nodiscard]] Piece next_of_event(std::string_view input) noexcept;
  void read_mark(char c) noexcept;
  void read_name(char c) noexcept;
  [[nodiscard]] bool end_line() noexcept;

  StreamFormat format_;
  State state_;
  // true: the last octet was a CR; a line feed after it belongs to the same line break
  bool after_cr_ = false;
  bool has_data_ = false;     // true: the event has a data field
  std::uint8_t matched_ = 0;  // how many octets of the byte order mark, or of the name "data", were read
};

}  // namespace weir::http
