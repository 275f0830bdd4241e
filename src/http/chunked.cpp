#include "weir/http/chunked.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::http {

namespace {

constexpr std::uint32_t kMostSpare = 16 << 10;  // of a body beyond what its data outweighs
constexpr std::uint64_t kMostSize = std::uint64_t{1} << 60;

constexpr int hex(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = static_cast<char>(c | 0x20);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

constexpr bool is_text(char c) noexcept {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

}  // namespace

bool ChunkDecoder::digit(char c) noexcept {
  const int value = hex(c);
  if (value < 0 || left_ >= kMostSize / 16) return false;
  if (left_ == 0 && state_ == State::Size && ++spare_ > kMostSpare) return false;  // leading zeros
  left_ = left_ * 16 + static_cast<std::uint64_t>(value);
  state_ = State::Size;
  return true;
}

bool ChunkDecoder::spare(char c) noexcept {
  return is_text(c) && ++spare_ <= kMostSpare;
}

// One byte of anything but chunk data. False: it may not stand there.
bool ChunkDecoder::step(char c) noexcept {
  const auto expect = [&](char wanted, State next) {
    if (c != wanted) return false;
    state_ = next;
    return true;
  };
  switch (state_) {
    case State::SizeStart:
      return digit(c);
    case State::Size:
      if (hex(c) >= 0) return digit(c);
      if (c == '\r') return expect('\r', State::SizeLf);
      [[fallthrough]];
    case State::Blank:  // before ';' (RFC 9112 §7.1.1), or a server's padding
      if (c == '\r') return sender_ == Sender::Server && expect('\r', State::SizeLf);
      state_ = c == ';' ? State::Extension : State::Blank;
      return (c == ';' || c == ' ' || c == '\t') && spare(c);
    case State::Extension:
      return c == '\r' ? expect('\r', State::SizeLf) : spare(c);
    case State::SizeLf:
      return expect('\n', left_ > 0 ? State::Data : State::TrailerStart);
    case State::DataCr:
      return expect('\r', State::DataLf);
    case State::DataLf:
      return expect('\n', State::SizeStart);
    case State::TrailerStart:
      if (c == '\r') return expect('\r', State::LastLf);
      state_ = State::Trailer;
      return spare(c);
    case State::Trailer:
      return c == '\r' ? expect('\r', State::TrailerLf) : spare(c);
    case State::TrailerLf:
      return expect('\n', State::TrailerStart);
    case State::LastLf:
      return expect('\n', State::Done);
    case State::Data:
    case State::Done:
      return false;
  }
  return false;
}

ChunkDecoder::Piece ChunkDecoder::next(std::string_view input) noexcept {
  std::size_t used = 0;
  while (used < input.size()) {
    if (state_ == State::Data) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - used));
      left_ -= size;
      spare_ -= static_cast<std::uint32_t>(std::min<std::uint64_t>(spare_, size));
      if (left_ == 0) state_ = State::DataCr;
      return {Status::Data, input.substr(used, size), used + size};
    }
    if (state_ == State::Done) break;
    if (!step(input[used])) return {Status::Bad, {}, used};
    ++used;
  }
  return {state_ == State::Done ? Status::Done : Status::NeedMore, {}, used};
}

void append_chunk_size(std::string& out, std::uint64_t size) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
  out.append(digits.data(), end);
  out += "\r\n";
}

}  // namespace weir::http
