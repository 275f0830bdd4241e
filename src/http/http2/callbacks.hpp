// The functions that nghttp2 calls for a Http2Session, and the conversions between nghttp2's types and
// weir's.
#pragma once

#include "weir/http/http2_session.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <boost/container/small_vector.hpp>
#include <nghttp2/nghttp2.h>
#include <sys/types.h>

namespace weir::http {

// Messages with at most this number of fields need no allocation.
inline constexpr std::size_t kUsualFields = 32;
using NameValues = boost::container::small_vector<nghttp2_nv, kUsualFields>;

// The lowest of the frame types that RFC 9113 does not define. Receivers ignore such frames (RFC 9113 §4.1).
inline constexpr unsigned kFirstUnknownType = 0xa;

[[nodiscard]] std::string_view text_of(const std::uint8_t* octets, std::size_t size) noexcept;
// nghttp2 wants a pointer to non-const, but does not write.
[[nodiscard]] std::uint8_t* octets_of(std::string_view text) noexcept;
// The result refers to the texts of `fields`.
[[nodiscard]] NameValues name_values_of(const Http2Fields& fields);
// Throws std::bad_alloc if `result` says that memory has run out. Ignores every other failure of an nghttp2
// function: the stream then no longer exists, and on_closed() reports that.
void check_memory(int result);

// The user data that nghttp2 passes to these functions is the Http2Session. Each function is noexcept,
// because no exception may pass through nghttp2's C code. Http2Session::receive() and write() rethrow the
// exceptions of event handlers.
struct Http2Session::Callbacks {
  struct Events;  // the functions that report what a peer has sent, and what weir has sent

  // Both results are shared by all sessions, are never freed, and may be used by all threads.
  [[nodiscard]] static nghttp2_session_callbacks* all();
  // The option disables automatic WINDOW_UPDATE frames. weir sends these frames itself, when octets of a body
  // leave its memory. It also makes nghttp2 report frames of unknown types, which nghttp2 would skip
  // otherwise.
  [[nodiscard]] static nghttp2_option* option();

  // Gives nghttp2 the next octets of the body that a stream sends, and the trailers after the last octet.
  static ssize_t give(nghttp2_session* session, std::int32_t id, std::uint8_t* at, std::size_t room,
                      std::uint32_t* flags, nghttp2_data_source* source, void* data) noexcept;
};

}  // namespace weir::http
