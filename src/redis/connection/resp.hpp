// Parses RESP replies into values, with the reader of hiredis. weir uses no other part of hiredis.
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
    Number,   // an integer, in numbers[0]
    Numbers,  // an array of integers only
    Other,    // any other array
  };
  Kind kind = Kind::Nil;
  std::string text;  // used by Status, Error and Text
  std::vector<std::int64_t> numbers;
  // For Kind::Other: all texts in the array, in order, with the texts of nested arrays.
  std::vector<std::string> words{};
};

// Parses bytes from the socket, in pieces of any size. The parser allocates no memory once its buffers are
// large enough.
class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // Discards all input and the current reply. Must be called for a new connection.
  void reset();
  void feed(std::string_view bytes);

  enum class Next : std::uint8_t {
    Ready,
    Incomplete,  // the reply is not complete; more bytes must be fed
    // The bytes are not RESP, or the reply is larger than 1 MiB or nested more than eight arrays deep. The
    // caller must close the connection.
    Malformed,
  };
  // Returns true if a part of a reply has arrived.
  [[nodiscard]] bool has_begun() const noexcept { return begun_; }
  // Parses the next whole reply. reply() is valid until the next call.
  [[nodiscard]] Next next();
  [[nodiscard]] const Reply& reply() const noexcept { return reply_; }

 private:
  friend struct ReplyBuilder;
  struct Free {
    void operator()(void* reader) const noexcept;
  };
  // Counts one more element of the current reply. `octets`: the element's size. Returns false if the reply
  // has become too large.
  [[nodiscard]] bool takes(std::size_t octets) noexcept;

  Reply reply_;
  std::size_t size_ = 0;  // bytes of the current reply, plus 16 for each element
  bool begun_ = false;
  std::unique_ptr<void, Free> reader_;  // a redisReader
};

}  // namespace weir::redis
