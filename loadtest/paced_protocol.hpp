// Protocol writes the requests of one connection of paced.cpp, and finds the ends of the answers: HTTP/1.1,
// or gRPC over HTTP/2.
#pragma once

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "paced: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

struct Answer {
  bool refused;  // true: a status of 400 or more (HTTP/1.1), or no message (gRPC)
};

namespace http1 {

struct Response {
  std::size_t octets;  // size of head and body together
  int status;
};

// Returns the response at the front, or nullopt if it is not complete. A response without Content-Length
// counts as a response without a body.
inline std::optional<Response> response_in(std::string_view received) {
  const std::size_t end = received.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view head = received.substr(0, end);
  constexpr std::string_view kName = "\r\ncontent-length:";
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const auto field = std::search(head.begin(), head.end(), kName.begin(), kName.end(), same);
  std::size_t body = 0;
  if (field != head.end()) {
    const char* value = &*field + kName.size();
    while (*value == ' ') ++value;
    std::from_chars(value, head.data() + head.size(), body);
  }
  if (received.size() < end + 4 + body) return std::nullopt;
  int status = 0;
  if (head.size() > 12) std::from_chars(head.data() + 9, head.data() + 12, status);
  return Response{end + 4 + body, status};
}

}  // namespace http1

namespace http2 {

// Frames of HTTP/2 (RFC 9113 §4.1) and their flags.
enum : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7,
  kWindow = 8
};
enum : std::uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4 };
constexpr std::size_t kFrameHead = 9;

inline std::string number(std::uint32_t value) {
  const char octets[] = {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                         static_cast<char>(value >> 8), static_cast<char>(value)};
  return {octets, sizeof octets};
}
inline std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                         std::string_view payload) {
  auto octets = number(static_cast<std::uint32_t>(payload.size())).substr(1);
  octets += static_cast<char>(type);
  octets += static_cast<char>(flags);
  return octets.append(number(stream)).append(payload);
}
inline std::string text(std::string_view octets) {
  return std::string(1, static_cast<char>(octets.size())).append(octets);
}

// Returns the fields of a call, as HPACK literals (RFC 7541 §6.2.2). Indexes are those of HPACK's
// static table.
inline std::string call_fields(std::string_view path) {
  return std::string("\x83\x86", 2) + "\x04" + text(path) + "\x01" + text("localhost") + "\x0f\x10" +
         text("application/grpc") + std::string(1, '\0') + text("te") + text("trailers");
}

}  // namespace http2

// One connection's state of the protocol. A connection has one request at a time.
class Protocol {
 public:
  // `path`: the path of the gRPC calls, or "h1" for HTTP/1.1. `octets`: the whole request (HTTP/1.1), or the
  // message of each call (gRPC).
  Protocol(std::string_view path, std::string octets) : is_http2_(path != "h1"), octets_(std::move(octets)) {
    if (is_http2_) fields_ = http2::call_fields(path);
  }
  // Returns what a connection begins with.
  [[nodiscard]] std::string opening() const {
    using namespace http2;
    if (!is_http2_) return {};
    return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, {}) +
           frame(kWindow, 0, 0, number(1U << 30));
  }
  [[nodiscard]] std::string next_request() {
    using namespace http2;
    if (!is_http2_) return octets_;
    const auto stream = std::exchange(stream_, stream_ + 2);
    return frame(kHeaders, kEndHeaders, stream, fields_) + frame(kData, kEndStream, stream, octets_);
  }
  // Removes the complete answer (HTTP/1.1) or all complete frames (HTTP/2) at the front of `received`.
  // Returns the answer if its end was among them; otherwise nullopt. Appends to `reply` the frames that
  // HTTP/2 requires of the client, such as acknowledgements.
  std::optional<Answer> take_answer(std::string& received, std::string& reply) {
    if (is_http2_) return take_frames(received, reply);
    const auto response = http1::response_in(received);
    if (!response) return std::nullopt;
    received.erase(0, response->octets);
    return Answer{response->status >= 400};
  }

 private:
  std::optional<Answer> take_frames(std::string& received, std::string& reply) {
    using namespace http2;
    std::optional<Answer> answer;
    while (received.size() >= kFrameHead) {
      const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(received[i]); };
      const std::size_t size = std::size_t{at(0)} << 16 | std::size_t{at(1)} << 8 | at(2);
      if (received.size() < kFrameHead + size) break;
      const auto type = at(3), flags = at(4);
      if (type == kReset || type == kGoaway) fail("the server has ended a call");
      if (type == kSettings && (flags & kAck) == 0) reply += frame(kSettings, kAck, 0, {});
      if (type == kPing && (flags & kAck) == 0)
        reply += frame(kPing, kAck, 0, received.substr(kFrameHead, size));
      if (type == kData) has_message_ = true;
      if ((type == kData || type == kHeaders) && (flags & kEndStream) != 0)
        answer = Answer{!std::exchange(has_message_, false)};
      received.erase(0, kFrameHead + size);
    }
    return answer;
  }

  bool is_http2_;
  std::string octets_, fields_;
  std::uint32_t stream_ = 1;
  bool has_message_ = false;
};
