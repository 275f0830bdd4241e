// Heads and lines of a log are dozens of short pieces: an append apiece checks room a dozen times and copies
// by a call. This makes room once, for the most that can come, and copies what is known at compile time by a
// few moves.
#pragma once

#include <cassert>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weir::base {

class TextWriter {
 public:
  static constexpr std::size_t kDigits = 20;  // the most of a number

  // Behind what `out` holds. REQUIRES that no more than `most` bytes are written.
  TextWriter(std::string& out, std::size_t most) : out_(out) {
    const auto begin = out.size();
    out.resize(begin + most);
    at_ = out.data() + begin;
  }
  ~TextWriter() {
    const auto size = static_cast<std::size_t>(at_ - out_.data());
    assert(size <= out_.size());
    out_.resize(size);
  }
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  template <std::size_t N>
  TextWriter& operator<<(const char (&literal)[N]) noexcept {
    std::memcpy(at_, literal, N - 1);
    at_ += N - 1;
    return *this;
  }
  TextWriter& operator<<(std::string_view text) noexcept {
    std::char_traits<char>::copy(at_, text.data(), text.size());  // an empty one may be null
    at_ += text.size();
    return *this;
  }
  TextWriter& operator<<(std::same_as<char> auto c) noexcept {  // numbers are not to become characters
    *at_++ = c;
    return *this;
  }
  TextWriter& operator<<(std::uint64_t number) noexcept {
    at_ = std::to_chars(at_, at_ + kDigits, number).ptr;
    return *this;
  }
  // `number` in exactly `width` digits. REQUIRES number < 10^width.
  TextWriter& padded(std::uint64_t number, std::size_t width) noexcept {
    for (std::size_t i = width; i-- > 0; number /= 10) at_[i] = static_cast<char>('0' + number % 10);
    at_ += width;
    return *this;
  }

 private:
  std::string& out_;
  char* at_;
};

}  // namespace weir::base
