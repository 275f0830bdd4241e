// The Asio types that weir uses: one executor type, no type erasure, one io_context for each worker.
//
// An object of these types belongs to the worker whose io_context it uses. Only the thread of that worker may
// use the object.
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

namespace weir::net {

namespace asio = boost::asio;

using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;

template <class T>
using Awaitable = asio::awaitable<T, Executor>;

// A connected stream socket, TCP or unix.
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

inline constexpr asio::use_awaitable_t<Executor> kAwait{};

// Makes `co_await socket.async_…(…, into(ec))` store the error in `ec` instead of throwing it.
[[nodiscard]] inline auto into(ErrorCode& ec) {
  return asio::redirect_error(kAwait, ec);
}

}  // namespace weir::net
