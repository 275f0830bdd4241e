// An HTTP/2 client without a socket, for tests of weir's HTTP/2 session. Uses the client side of nghttp2.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

namespace weir::http {

class Http2Client {
 public:
  using Lines = std::vector<std::pair<std::string, std::string>>;

  struct Answer {
    std::string heads;  // "name=value\n" for each field, and "\n" after each head
    std::string body;
    bool ended = false;
    std::optional<std::uint32_t> closed{};  // the error code of the closed stream
  };
  struct Goaway {
    std::int32_t last;
    std::uint32_t error;
    bool operator==(const Goaway&) const = default;
  };

  // `strict`: false if the client may also send messages that RFC 9113 forbids. `windows`: false if the
  // client lets weir send more octets only in open_windows().
  explicit Http2Client(bool strict = true, bool windows = true) {
    nghttp2_session_callbacks* calls = nullptr;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_field);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_closed);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_http_messaging(option, strict ? 0 : 1);
    nghttp2_option_set_no_auto_window_update(option, windows ? 0 : 1);
    nghttp2_session_client_new2(&session_, calls, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    nghttp2_submit_settings(session_, 0, nullptr, 0);
  }
  ~Http2Client() { nghttp2_session_del(session_); }
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  [[nodiscard]] nghttp2_session* session() noexcept { return session_; }

  // Sends a request for `path`, with the additional fields `more`. Without `body`, the head ends the stream.
  // If `ends` is false, the body stays incomplete. Returns the ID of the stream.
  std::int32_t request(const Lines& more = {}, std::optional<std::string> body = {}, bool ends = true) {
    Lines lines{
        {":method", body ? "POST" : "GET"}, {":scheme", "http"}, {":path", path}, {":authority", "a"}};
    lines.insert(lines.end(), more.begin(), more.end());
    const auto fields = values(lines);
    nghttp2_data_provider source{};
    source.source.ptr = this;
    source.read_callback = read_body;
    const auto id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                           body ? &source : nullptr, nullptr);
    if (id < 0) throw std::runtime_error(nghttp2_strerror(id));
    if (body) bodies_[id] = {std::move(*body), ends, {}};
    return id;
  }
  // Sends trailers after the body of a stream.
  void set_trailers(std::int32_t id, Lines trailers) { bodies_[id].trailers = std::move(trailers); }
  void reset(std::int32_t id, std::uint32_t error = NGHTTP2_CANCEL) {
    nghttp2_submit_rst_stream(session_, 0, id, error);
  }
  // Permits weir to send `octets` more octets, on the stream and on the connection.
  void open_windows(std::int32_t id, std::int32_t octets) {
    nghttp2_submit_window_update(session_, 0, id, octets);
    nghttp2_submit_window_update(session_, 0, 0, octets);
  }

  // Returns the octets that the client sends to weir.
  std::string take() {
    std::string out;
    for (;;) {
      const std::uint8_t* at = nullptr;
      const auto size = nghttp2_session_mem_send(session_, &at);
      if (size <= 0) return out;
      out.append(reinterpret_cast<const char*>(at), static_cast<std::size_t>(size));
    }
  }
  // Passes octets from weir to the client. Returns false if these octets break the protocol.
  bool give(std::string_view octets) {
    return nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(octets.data()),
                                    octets.size()) == static_cast<ssize_t>(octets.size());
  }

  std::string path = "/";
  std::map<std::int32_t, Answer> answers;
  std::vector<Goaway> goaways;
  int pongs = 0;

 private:
  struct Body {
    std::string left;
    bool ends = true;
    Lines trailers{};
  };

  static std::vector<nghttp2_nv> values(const Lines& lines) {
    std::vector<nghttp2_nv> made;
    for (const auto& [name, value] : lines)
      made.push_back({octets_of(name), octets_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    return made;
  }
  static std::uint8_t* octets_of(const std::string& text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  }
  static Http2Client& of(void* data) { return *static_cast<Http2Client*>(data); }

  static int on_field(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                      void* data) {
    auto& heads = of(data).answers[frame->hd.stream_id].heads;
    heads.append(reinterpret_cast<const char*>(name), name_size).append("=");
    heads.append(reinterpret_cast<const char*>(value), value_size).append("\n");
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    auto& client = of(data);
    if (frame->hd.type == NGHTTP2_HEADERS) client.answers[frame->hd.stream_id].heads += "\n";
    if (frame->hd.type == NGHTTP2_GOAWAY)
      client.goaways.push_back({frame->goaway.last_stream_id, frame->goaway.error_code});
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) ++client.pongs;
    const bool message = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (message && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
      client.answers[frame->hd.stream_id].ended = true;
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* at,
                     std::size_t size, void* data) {
    of(data).answers[id].body.append(reinterpret_cast<const char*>(at), size);
    return 0;
  }
  static int on_closed(nghttp2_session*, std::int32_t id, std::uint32_t error, void* data) {
    of(data).answers[id].closed = error;
    return 0;
  }
  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* at, std::size_t room,
                           std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& body = of(source->ptr).bodies_[id];
    const auto size = body.left.copy(reinterpret_cast<char*>(at), room);
    body.left.erase(0, size);
    if (size == 0 && !body.ends) return NGHTTP2_ERR_DEFERRED;
    if (!body.left.empty() || !body.ends) return static_cast<ssize_t>(size);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!body.trailers.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const auto fields = values(body.trailers);
      nghttp2_submit_trailer(session, id, fields.data(), fields.size());
    }
    return static_cast<ssize_t>(size);
  }

  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Body> bodies_;
};

}  // namespace weir::http
