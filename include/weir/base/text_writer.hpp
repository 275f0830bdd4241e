// Appends many short pieces to a string. A message head or a log line consists of dozens of pieces, and
// std::string::append checks the capacity for each piece. TextWriter reserves the maximum size once, and
// copies each literal with a few move instructions.
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
  static constexpr std::size_t kDigits = 20;  // the number of digits of the largest std::uint64_t

  // Appends to `out`, after its present contents. Keeps a reference to `out`. The destructor shortens `out`
  // to the bytes that were written. REQUIRES: the caller writes at most `most` bytes through this object.
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
    std::char_traits<char>::copy(at_, text.data(), text.size());  // data() is null for some empty views
    at_ += text.size();
    return *this;
  }
  // Accepts only char, because an int argument would otherwise be written as a character.
  TextWriter& operator<<(std::same_as<char> auto c) noexcept {
    *at_++ = c;
    return *this;
  }
  TextWriter& operator<<(std::uint64_t number) noexcept {
    if (number < 10) return *this << static_cast<char>('0' + number);  // many numbers have one digit
    at_ = std::to_chars(at_, at_ + kDigits, number).ptr;
    return *this;
  }
  // Writes `number` with leading zeros in exactly `width` digits. REQUIRES: number < 10^width.
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
