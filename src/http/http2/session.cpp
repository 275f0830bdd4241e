#include "http/http2/callbacks.hpp"

#include "weir/http/http2_session.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include <nghttp2/nghttp2.h>

namespace weir::http {

void Http2Session::Free::operator()(nghttp2_session* session) const noexcept {
  nghttp2_session_del(session);
}

Http2Session::Http2Session(Http2Events& events, const Http2Limits& limits, Http2Side side)
    : events_(events), side_(side) {
  const bool serves = side == Http2Side::Server;
  nghttp2_session* made = nullptr;
  check_memory((serves ? nghttp2_session_server_new2 : nghttp2_session_client_new2)(
      &made, Callbacks::all(), this, Callbacks::option()));
  session_.reset(made);
  // The last of `settings` says that weir accepts WebSockets (RFC 8441 §3). Only a server sends it.
  const auto first = serves
                         ? nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.max_streams}
                         : nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
  const std::array settings{
      first,
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.stream_window},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.max_head},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
  };
  const auto count = serves ? settings.size() : settings.size() - 1;
  check_memory(nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings.data(), count));
  check_memory(nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0,
                                                     static_cast<std::int32_t>(limits.connection_window)));
}

Http2Session::~Http2Session() = default;

void Http2Session::note_opened(std::int32_t id) noexcept {
  if (id > last_opened_ + 2) {
    skipped_from_ = last_opened_;
    skipped_to_ = id;
  }
  last_opened_ = id;
}

// Returns true if the server has sent more than kMostUnknown frames of unknown types since its last DATA or
// HEADERS frame.
bool Http2Session::is_flood(std::uint8_t type) noexcept {
  if (type == NGHTTP2_DATA || type == NGHTTP2_HEADERS) unknown_ = 0;
  return side_ == Http2Side::Client && type >= kFirstUnknownType && ++unknown_ > kMostUnknown;
}

void Http2Session::rethrow() {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

bool Http2Session::receive(std::string_view received) {
  const auto used = nghttp2_session_mem_recv(session_.get(), octets_of(received), received.size());
  rethrow();
  if (used == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
  if (used < 0)
    go_away(used == NGHTTP2_ERR_BAD_CLIENT_MAGIC ? Http2Error::Protocol : Http2Error::EnhanceYourCalm);
  return used >= 0;
}

void Http2Session::write(std::string& out, std::size_t most) {
  while (out.size() < most) {
    const std::uint8_t* at = nullptr;
    const auto size = nghttp2_session_mem_send(session_.get(), &at);
    rethrow();
    if (size == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
    if (size <= 0) return;
    out += text_of(at, static_cast<std::size_t>(size));
  }
}

bool Http2Session::is_over() const noexcept {
  return nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0;
}

std::optional<std::int32_t> Http2Session::request(const Http2Fields& fields, bool has_body,
                                                  Http2StreamEvents& stream) {
  const auto values = name_values_of(fields);
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::give;
  const auto id = nghttp2_submit_request(session_.get(), nullptr, values.data(), values.size(),
                                         has_body ? &body : nullptr, &stream);
  check_memory(id);
  return id > 0 ? std::optional(id) : std::nullopt;
}

bool Http2Session::accepts_requests() const noexcept {
  return nghttp2_session_check_request_allowed(session_.get()) != 0;
}

std::uint32_t Http2Session::max_streams() const noexcept {
  return nghttp2_session_get_remote_settings(session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

void Http2Session::detach(std::int32_t id) noexcept {
  static_cast<void>(nghttp2_session_set_stream_user_data(session_.get(), id, nullptr));
}

void Http2Session::send_interim(std::int32_t id, const Http2Fields& fields) {
  const auto values = name_values_of(fields);
  check_memory(nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, id, nullptr, values.data(),
                                      values.size(), nullptr));
}

void Http2Session::send_head(std::int32_t id, const Http2Fields& fields, bool has_body) {
  const auto values = name_values_of(fields);
  nghttp2_data_provider body{};
  body.read_callback = Callbacks::give;
  check_memory(
      nghttp2_submit_response(session_.get(), id, values.data(), values.size(), has_body ? &body : nullptr));
}

void Http2Session::resume(std::int32_t id) noexcept {
  // This call fails if nghttp2 has not called give() yet. The failure does not matter, because nghttp2 will
  // call give() anyway.
  static_cast<void>(nghttp2_session_resume_data(session_.get(), id));
}

void Http2Session::reset(std::int32_t id, Http2Error error) {
  check_memory(
      nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, static_cast<std::uint32_t>(error)));
}

void Http2Session::consume(std::int32_t id, std::size_t octets) {
  check_memory(nghttp2_session_consume(session_.get(), id, octets));
}

void Http2Session::ping() {
  check_memory(nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr));
}

void Http2Session::announce_end() {
  check_memory(nghttp2_submit_shutdown_notice(session_.get()));
}

void Http2Session::go_away(Http2Error error) {
  const auto code = static_cast<std::uint32_t>(error);
  if (error != Http2Error::None) return check_memory(nghttp2_session_terminate_session(session_.get(), code));
  go_away_after(nghttp2_session_get_last_proc_stream_id(session_.get()));
}

void Http2Session::go_away_after(std::int32_t last) {
  last_accepted_ = std::min(last_accepted_, last);
  check_memory(
      nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last_accepted_, NGHTTP2_NO_ERROR, nullptr, 0));
}

}  // namespace weir::http
