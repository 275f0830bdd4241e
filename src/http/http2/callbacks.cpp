#include "http/http2/callbacks.hpp"

#include <new>

namespace weir::http {

namespace {

// The maximum size of a head to send. It exceeds the largest max_head, because nghttp2 silently drops heads
// above its maximum.
constexpr std::size_t kMostHeadToSend = 2 << 20;

constexpr unsigned kLastUnknownType = 0xff;

Http2StreamEvents* stream_of(nghttp2_session* session, std::int32_t id) noexcept {
  return static_cast<Http2StreamEvents*>(nghttp2_session_get_stream_user_data(session, id));
}

bool is_request(const nghttp2_frame& frame) noexcept {
  return frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
}

Http2CheapFrame kind_of(const nghttp2_frame_hd& frame) noexcept {
  switch (frame.type) {
    case NGHTTP2_SETTINGS:
      return Http2CheapFrame::Settings;
    case NGHTTP2_PING:
      return Http2CheapFrame::Ping;
    case NGHTTP2_PRIORITY:
    case NGHTTP2_PRIORITY_UPDATE:
      return Http2CheapFrame::Priority;
    case NGHTTP2_WINDOW_UPDATE:
      return Http2CheapFrame::WindowUpdate;
    case NGHTTP2_RST_STREAM:
      return Http2CheapFrame::Reset;
    default:
      return Http2CheapFrame::Other;
  }
}

// Returns true for a reset of a stream that is closed already. A client that has reset a stream still
// receives the frames that weir sent before. Some clients send one more reset for each of these frames (RFC
// 9113 §5.1).
bool resets_nothing(nghttp2_session* session, const nghttp2_frame_hd& frame) noexcept {
  return frame.type == NGHTTP2_RST_STREAM && stream_of(session, frame.stream_id) == nullptr;
}

bool is_empty_data(const nghttp2_frame& frame) noexcept {
  return frame.hd.type == NGHTTP2_DATA && frame.hd.length == frame.data.padlen &&
         (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0;
}

// Returns true for the errors with which weir itself resets streams. nghttp2 uses the other errors when it
// resets a stream.
bool is_weirs_own(Http2Error error) noexcept {
  return error == Http2Error::None || error == Http2Error::Internal || error == Http2Error::Cancel;
}

}  // namespace

std::string_view text_of(const std::uint8_t* octets, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(octets), size};
}

std::uint8_t* octets_of(std::string_view text) noexcept {
  return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
}

NameValues name_values_of(const Http2Fields& fields) {
  NameValues values;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto [name, value] = fields[i];
    values.push_back({octets_of(name), octets_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  return values;
}

void check_memory(int result) {
  if (result == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
}

struct Http2Session::Callbacks::Events {
  // Calls `call`, and stores the exception that it throws for Http2Session::rethrow().
  template <class Call>
  static int guarded(void* data, Call call) noexcept {
    try {
      call();
    } catch (...) {
      of(data).thrown_ = std::current_exception();
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
  }
  static Http2Session& of(void* data) noexcept { return *static_cast<Http2Session*>(data); }

  // Returns true for a frame whose fields belong to a message: the head of a request or, if weir is the
  // client, any HEADERS frame.
  static bool is_head(const nghttp2_frame& frame, void* data) noexcept {
    return is_request(frame) || (frame.hd.type == NGHTTP2_HEADERS && of(data).side_ == Http2Side::Client);
  }

  // Reports each frame that is neither part of a message nor an acknowledgement of SETTINGS, by
  // on_cheap_frame(). Does so before nghttp2 processes the frame, because nghttp2 drops some of these frames
  // without another callback. Ends the connection instead in two cases:
  // * A server sends too many frames of unknown types.
  // * A client opens a stream with an ID that it has just skipped. nghttp2 would ignore such a stream (RFC
  //   9113 §5.1.1).
  static int begin_frame(nghttp2_session* codec, const nghttp2_frame_hd* frame, void* data) noexcept {
    const bool opens = frame->type == NGHTTP2_HEADERS;
    const bool acknowledges = frame->type == NGHTTP2_SETTINGS && (frame->flags & NGHTTP2_FLAG_ACK) != 0;
    const bool of_message = opens || frame->type == NGHTTP2_DATA || frame->type == NGHTTP2_CONTINUATION;
    const auto& session = of(data);
    const auto id = frame->stream_id;
    const bool late = opens && id > session.skipped_from_ && id < session.skipped_to_;
    const bool flood = of(data).is_flood(frame->type);
    if (!late && !flood && (of_message || acknowledges)) return 0;
    return guarded(data, [&] {
      if (late || flood)
        of(data).go_away(late ? Http2Error::Protocol : Http2Error::EnhanceYourCalm);
      else
        of(data).events_.on_cheap_frame(resets_nothing(codec, *frame) ? Http2CheapFrame::Other
                                                                      : kind_of(*frame));
    });
  }

  // Drops a frame of an unknown type, which begin_frame() has reported.
  static int unknown_frame(nghttp2_session*, void**, const nghttp2_frame_hd*, void*) noexcept {
    return NGHTTP2_ERR_CANCEL;
  }

  static int begin_head(nghttp2_session* session, const nghttp2_frame* frame, void* data) noexcept {
    if (!is_request(*frame)) return 0;
    const auto id = frame->hd.stream_id;
    return guarded(data, [&] {
      of(data).note_opened(id);
      // The GOAWAY of go_away_after() excludes the stream. nghttp2 closes the stream when it has sent this
      // GOAWAY.
      if (of(data).excludes(id)) return;
      auto* const stream = of(data).events_.on_stream(id);
      if (stream != nullptr)
        check_memory(nghttp2_session_set_stream_user_data(session, id, stream));
      else
        of(data).reset(id, Http2Error::RefusedStream);
    });
  }

  static int field(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name,
                   std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                   void* data) noexcept {
    auto* const stream = is_head(*frame, data) ? stream_of(session, frame->hd.stream_id) : nullptr;
    if (stream == nullptr) return 0;
    return guarded(data, [&] { stream->on_field(text_of(name, name_size), text_of(value, value_size)); });
  }

  // Resets the stream if a field contains forbidden octets (RFC 9113 §8.2.1). Without this callback, nghttp2
  // would only drop the field.
  static int faulty_field(nghttp2_session*, const nghttp2_frame*, const std::uint8_t*, std::size_t,
                          const std::uint8_t*, std::size_t, std::uint8_t, void*) noexcept {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int frame(nghttp2_session* session, const nghttp2_frame* frame, void* data) noexcept {
    return guarded(data, [&] {
      auto& events = of(data).events_;
      const bool answers = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
      if (frame->hd.type == NGHTTP2_PING && answers) return events.on_pong();
      if (frame->hd.type == NGHTTP2_GOAWAY) of(data).peer_goes_away_ = true;
      if (is_empty_data(*frame)) events.on_cheap_frame(Http2CheapFrame::EmptyData);
      if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) return;
      auto* stream = stream_of(session, frame->hd.stream_id);
      if (stream != nullptr && is_head(*frame, data)) stream->on_head();
      stream = stream_of(session, frame->hd.stream_id);
      if (stream != nullptr && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) stream->on_end();
    });
  }

  // nghttp2 calls this function when it has sent a frame. Reports the end of a sent message, a reset that
  // nghttp2 sent because of a fault of the peer, and a GOAWAY with an error.
  static int sent_frame(nghttp2_session* session, const nghttp2_frame* frame, void* data) noexcept {
    auto& events = of(data).events_;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) events.on_failure();
    const bool of_message = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (of_message && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
      if (auto* const stream = stream_of(session, frame->hd.stream_id))
        return guarded(data, [&] { stream->on_end_sent(); });
    if (frame->hd.type != NGHTTP2_RST_STREAM) return 0;
    const auto error = static_cast<Http2Error>(frame->rst_stream.error_code);
    if (error == Http2Error::RefusedStream)
      return guarded(data, [&] { events.on_cheap_frame(Http2CheapFrame::Refused); });
    if (is_weirs_own(error)) return 0;
    return guarded(data, [&] { events.on_cheap_frame(Http2CheapFrame::Fault); });
  }

  static int chunk(nghttp2_session* session, std::uint8_t, std::int32_t id, const std::uint8_t* at,
                   std::size_t size, void* data) noexcept {
    auto* const stream = stream_of(session, id);
    return guarded(data, [&] {
      if (stream != nullptr)
        stream->on_data(text_of(at, size));
      else
        of(data).consume(id, size);
    });
  }

  static int closed(nghttp2_session* session, std::int32_t id, std::uint32_t error, void* data) noexcept {
    auto* const stream = stream_of(session, id);
    if (stream == nullptr) return 0;
    const auto why = id == of(data).unsent_ ? Http2Error::RefusedStream : static_cast<Http2Error>(error);
    return guarded(data, [&] { stream->on_closed(why); });
  }

  // Notes a request that nghttp2 cannot send, because the server has sent GOAWAY in the meantime. nghttp2
  // then closes the stream of this request.
  static int unsent_frame(nghttp2_session*, const nghttp2_frame* frame, int, void* data) noexcept {
    if (is_request(*frame)) of(data).unsent_ = frame->hd.stream_id;
    return 0;
  }
};

ssize_t Http2Session::Callbacks::give(nghttp2_session* session, std::int32_t id, std::uint8_t* at,
                                      std::size_t room, std::uint32_t* flags, nghttp2_data_source*,
                                      void* data) noexcept {
  auto* const stream = stream_of(session, id);
  if (stream == nullptr) return NGHTTP2_ERR_DEFERRED;  // the stream was detached; a reset follows
  bool ended = false;
  const auto given = stream->give(reinterpret_cast<char*>(at), room, ended);
  if (ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (const auto* const trailers = ended ? stream->trailers() : nullptr) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const int failed = Events::guarded(data, [&] {
      const auto values = name_values_of(*trailers);
      check_memory(nghttp2_submit_trailer(session, id, values.data(), values.size()));
    });
    if (failed != 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  return given == 0 && !ended ? ssize_t{NGHTTP2_ERR_DEFERRED} : static_cast<ssize_t>(given);
}

nghttp2_session_callbacks* Http2Session::Callbacks::all() {
  static nghttp2_session_callbacks* const callbacks = [] {
    nghttp2_session_callbacks* made = nullptr;
    check_memory(nghttp2_session_callbacks_new(&made));
    nghttp2_session_callbacks_set_on_begin_frame_callback(made, Events::begin_frame);
    nghttp2_session_callbacks_set_unpack_extension_callback(made, Events::unknown_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, Events::begin_head);
    nghttp2_session_callbacks_set_on_header_callback(made, Events::field);
    nghttp2_session_callbacks_set_on_invalid_header_callback(made, Events::faulty_field);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, Events::frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(made, Events::sent_frame);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(made, Events::unsent_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, Events::chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, Events::closed);
    return made;
  }();
  return callbacks;
}

nghttp2_option* Http2Session::Callbacks::option() {
  static nghttp2_option* const option = [] {
    nghttp2_option* made = nullptr;
    check_memory(nghttp2_option_new(&made));
    nghttp2_option_set_no_auto_window_update(made, 1);
    nghttp2_option_set_max_send_header_block_length(made, kMostHeadToSend);
    for (unsigned type = kFirstUnknownType; type <= kLastUnknownType; ++type)
      nghttp2_option_set_user_recv_extension_type(made, static_cast<std::uint8_t>(type));
    return made;
  }();
  return option;
}

}  // namespace weir::http
