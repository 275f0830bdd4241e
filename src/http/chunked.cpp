#include "weir/http/chunked.hpp"

#include "http/token.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::http {

namespace {

// The maximum number of bytes by which extensions, trailers and leading zeros may exceed the data before
// them.
constexpr std::uint32_t kMostSpare = 16 << 10;
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
  // Leading zeros of a chunk size count as spare bytes, because a sender can add any number of them.
  if (left_ == 0 && state_ == State::Size && ++spare_ > kMostSpare) return false;
  left_ = left_ * 16 + static_cast<std::uint64_t>(value);
  state_ = State::Size;
  return true;
}

bool ChunkDecoder::spare(char c) noexcept {
  return is_text(c) && ++spare_ <= kMostSpare;
}

// Processes one byte of chunk extensions: name [ = value ], repeated after ';', with blanks around ';' and
// '='.
bool ChunkDecoder::step_in_extension(char c) noexcept {
  const bool blank = c == ' ' || c == '\t';
  const bool over = c == ';' || c == '\r' || blank;  // true: the name or value ends at this byte
  const auto begin = [&](State next) {
    state_ = next;
    return true;
  };
  const auto end = [&](State next) {
    return begin(c == ';' ? State::ExtensionStart : c == '\r' ? State::SizeLf : next);
  };
  switch (state_) {
    case State::ExtensionStart:
      return blank || (is_tchar(c) && begin(State::ExtensionName));
    case State::ExtensionName:
      return is_tchar(c) || (c == '=' && begin(State::ValueStart)) || (over && end(State::NameOver));
    case State::NameOver:
      return blank || (c == '=' && begin(State::ValueStart)) || (c == ';' && begin(State::ExtensionStart));
    case State::ValueStart:
      return blank || (c == '"' && begin(State::Quoted)) || (is_tchar(c) && begin(State::Value));
    case State::Value:
      return is_tchar(c) || (over && end(State::ValueOver));
    case State::Quoted:
      if (c == '"') return begin(State::QuoteOver);
      return c == '\\' ? begin(State::Escaped) : is_text(c);
    case State::Escaped:
      return is_text(c) && begin(State::Quoted);
    case State::QuoteOver:
      return over && end(State::ValueOver);
    default:  // ValueOver
      return blank || (c == ';' && begin(State::ExtensionStart));
  }
}

bool ChunkDecoder::step_in_trailer(char c) noexcept {
  const bool strict = sender_ == Sender::Client;
  if (state_ == State::Trailer && c == '\r') {
    state_ = State::TrailerLf;
    return true;
  }
  if (strict && state_ == State::TrailerName && c == ':')
    state_ = State::Trailer;
  else if (state_ == State::TrailerStart)
    state_ = strict ? State::TrailerName : State::Trailer;
  const bool name = state_ == State::TrailerName;
  return (!name || is_tchar(c)) && spare(c);
}

// Processes one byte that is not chunk data. Returns false if this byte is not allowed here.
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
    case State::Blank:  // blanks before ';' (RFC 9112 §7.1.1), or padding by a server
      if (c == '\r') return sender_ == Sender::Server && expect('\r', State::SizeLf);
      state_ = c != ';' ? State::Blank : sender_ == Sender::Server ? State::Extension : State::ExtensionStart;
      return (c == ';' || c == ' ' || c == '\t') && spare(c);
    case State::Extension:
      return c == '\r' ? expect('\r', State::SizeLf) : spare(c);
    case State::ExtensionStart:
    case State::ExtensionName:
    case State::NameOver:
    case State::ValueStart:
    case State::Value:
    case State::Quoted:
    case State::Escaped:
    case State::QuoteOver:
    case State::ValueOver:
      return step_in_extension(c) && (c == '\r' || spare(c));
    case State::SizeLf:
      return expect('\n', left_ > 0 ? State::Data : State::TrailerStart);
    case State::DataCr:
      return expect('\r', State::DataLf);
    case State::DataLf:
      return expect('\n', State::SizeStart);
    case State::TrailerStart:
      if (c == '\r') return expect('\r', State::LastLf);
      [[fallthrough]];
    case State::TrailerName:
    case State::Trailer:
      return step_in_trailer(c);
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

ChunkDecoder::Piece ChunkDecoder::next(std::string_view input, std::string* trailers) {
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
    const bool keeps = trailers != nullptr && is_in_trailers();
    if (!step(input[used])) return {Status::Bad, {}, used};
    if (keeps) *trailers += input[used];
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
