#include "weir/http/event_stream.hpp"

#include "weir/http/head.hpp"

#include <algorithm>

namespace weir::http {

namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";
constexpr std::string_view kData = "data";
constexpr std::string_view kLineBreak = "\n";

bool ends_line(char c) noexcept {
  return c == '\r' || c == '\n';
}

}  // namespace

std::optional<StreamFormat> stream_format(std::string_view content_type) noexcept {
  auto type = content_type.substr(0, std::min(content_type.find(';'), content_type.size()));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  if (equal_ignoring_case(type, "text/event-stream")) return StreamFormat::Events;
  for (const std::string_view lines : {"application/x-ndjson", "application/ndjson", "application/jsonl"})
    if (equal_ignoring_case(type, lines)) return StreamFormat::Lines;
  return std::nullopt;
}

RecordDecoder::Piece RecordDecoder::next(std::string_view input) noexcept {
  return format_ == StreamFormat::Lines ? next_line(input) : next_of_event(input);
}

// Returns the next piece of a line. A carriage return before the line feed stays in the record, because JSON
// treats a carriage return as white space.
RecordDecoder::Piece RecordDecoder::next_line(std::string_view input) const noexcept {
  if (input.empty()) return {Status::NeedMore, {}, 0};
  const auto end = std::min(input.find('\n'), input.size());
  if (end == 0) return {Status::End, {}, 1};
  return {Status::Data, input.substr(0, end), end};
}

RecordDecoder::Piece RecordDecoder::next_of_event(std::string_view input) noexcept {
  for (std::size_t at = 0; at < input.size();) {
    const char c = input[at];
    const bool second_half = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (second_half) {
      ++at;
    } else if (ends_line(c)) {
      ++at;
      if (end_line()) return {Status::End, {}, at};
    } else if (state_ == State::Value) {
      const auto end = std::min(input.find_first_of("\r\n", at), input.size());
      return {Status::Data, input.substr(at, end - at), end};
    } else if (state_ == State::Skip) {
      at = std::min(input.find_first_of("\r\n", at), input.size());
    } else if (state_ == State::Blank) {
      at += c == ' ' ? 1 : 0;
      state_ = State::Value;
    } else if (state_ == State::Mark) {
      read_mark(c);
      at += state_ == State::Mark ? 1 : 0;
    } else {
      ++at;
      read_name(c);
      if (state_ != State::Blank) continue;
      // The line breaks between data lines are part of the data.
      if (has_data_) return {Status::Data, kLineBreak, at};
      has_data_ = true;
    }
  }
  return {Status::NeedMore, {}, input.size()};
}

// Reads an octet at the beginning of the stream, where a byte order mark may be. If the octet does not
// continue the mark, changes to the state in which the octet is read as part of the first line.
void RecordDecoder::read_mark(char c) noexcept {
  if (matched_ < kMark.size() && c == kMark[matched_]) {
    ++matched_;
    return;
  }
  // If the stream begins with only a part of the byte order mark, that part is the start of a field with an
  // unknown name.
  const bool whole_or_none = matched_ == 0 || matched_ == kMark.size();
  matched_ = 0;
  state_ = whole_or_none ? State::Name : State::Skip;
}

// Reads an octet of a field's name, or the colon after it.
void RecordDecoder::read_name(char c) noexcept {
  if (c == ':')
    state_ = matched_ == kData.size() ? State::Blank : State::Skip;
  else if (matched_ < kData.size() && c == kData[matched_])
    ++matched_;
  else
    state_ = State::Skip;
}

// Processes the end of a line. Returns true if the line was empty and thereby ended an event that has data.
bool RecordDecoder::end_line() noexcept {
  const bool empty = (state_ == State::Name && matched_ == 0) ||
                     (state_ == State::Mark && (matched_ == 0 || matched_ == kMark.size()));
  state_ = State::Name;
  matched_ = 0;
  const bool ended = empty && has_data_;
  if (ended) has_data_ = false;
  return ended;
}

}  // namespace weir::http
