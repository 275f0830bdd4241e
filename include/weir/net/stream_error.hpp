// Errors of Stream that do not come from the peer or the system.
#pragma once

#include <type_traits>

#include <boost/system/error_code.hpp>

namespace weir::net {

enum class StreamError {
  WriteOwed = 1,  // the rest of an earlier text must be sent first; nothing was sent
};

[[nodiscard]] const boost::system::error_category& stream_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(StreamError error) noexcept;

}  // namespace weir::net

template <>
struct boost::system::is_error_code_enum<weir::net::StreamError> : std::true_type {};
