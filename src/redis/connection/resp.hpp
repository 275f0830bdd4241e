// Replies in RESP, as values. hiredis' reader does the parsing; nothing else of hiredis is used.
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
    Numbers,  // an array of numbers alone
    Other,    // any other array
  };
  Kind kind = Kind::Nil;
  std::string text;  // of Status, Error and Text
  std::vector<std::int64_t> numbers;
  std::vector<std::string> words{};  // of Other: its texts in order, those of arrays within it as well
};

// Fed what the socket says, in pieces of any size. Allocates nothing once warm.
class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // Forgets everything: for a new connection.
  void reset();
  void feed(std::string_view bytes);

  enum class Next : std::uint8_t {
    Ready,
    Incomplete,  // feed more
    Malformed,   // not RESP, or a reply beyond 1 MiB or eight arrays deep: drop the connection
  };
  // The next whole reply; `reply()` is valid until the next call.
  [[nodiscard]] Next next();
  [[nodiscard]] const Reply& reply() const noexcept { return reply_; }

 private:
  friend struct ReplyBuilder;
  struct Free {
    void operator()(void* reader) const noexcept;
  };
  // Notes one more element of the reply; false where the reply has become too large.
  [[nodiscard]] bool takes(std::size_t octets) noexcept;

  Reply reply_;
  std::size_t size_ = 0;  // octets of the reply under way, each element of it counted as 16 more
  std::unique_ptr<void, Free> reader_;  // a redisReader
};

}  // namespace weir::redis
