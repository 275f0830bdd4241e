// The gRPC calls of one connection to `weir echo --grpc`: HTTP/2 with prior knowledge.
//
// The server sends the messages of a call back as they arrive, and then grpc-status 0. With the metadata
// `x-grpc-status: N`, the status is N. The method grpc.health.v1.Health/Check returns SERVING.
#pragma once

#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/task.hpp"

namespace weir::cli {

// Serves a connection until it ends. `delay`: the pause between the head of a call and the answer's head.
[[nodiscard]] net::Task<void> serve_grpc(net::Stream stream, net::Executor executor, base::Duration delay);

}  // namespace weir::cli
