// Parses RESP replies into values. hiredis' reader does the parsing; weir uses nothing else of hiredis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::redis {

struct Reply {
  enum class Kind : std::uint8_t {
    Status,
    Error,
    Text,
    Nil,
    Number,   // numbers[0]
    Numbers,  // an array of numbers only
    Other,    // any other array
  };
  Kind kind = Kind::Nil;
  std::string text;  // of Status, Error and Text
  std::vector<std::int64_t> numbers;
  std::vector<std::string> words{};  // of Other: its texts in order, including those of nested arrays
};

// Parses bytes from the socket, in pieces of any size. Allocates nothing once warm.
class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // Discards all input. Must be called for a new connection.
  void reset();
  void feed(std::string_view bytes);

  enum class Next : std::uint8_t {
    Ready,
    Incomplete,  // feed more
    Malformed,   // not RESP, larger than 1 MiB, or nested deeper than eight arrays: close the connection
  };
  // Returns true if a part of a reply has come and the rest has not.
  [[nodiscard]] bool has_begun() const noexcept { return begun_; }
  // Parses the next whole reply. `reply()` is valid until the next call.
  [[nodiscard]] Next next();
  [[nodiscard]] const Reply& reply() const noexcept { return reply_; }

 private:
  friend struct ReplyBuilder;
  struct Free {
    void operator()(void* reader) const noexcept;
  };
  // Counts one more element of the reply. Returns false if the reply is too large.
  [[nodiscard]] bool takes(std::size_t octets) noexcept;

  Reply reply_;
  std::size_t size_ = 0;  // octets of the current reply, with 16 more for each element
  bool begun_ = false;
  std::unique_ptr<void, Free> reader_;  // a redisReader
};

}  // namespace weir::redis
