// The Asio types that weir uses: one executor type, no type erasure, one io_context for each worker.
//
// A socket or timer belongs to the worker whose io_context it uses. Only the thread of that worker may use
// it.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

namespace weir::net {

namespace asio = boost::asio;

using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;

// A connected stream socket, TCP or unix.
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

}  // namespace weir::net
