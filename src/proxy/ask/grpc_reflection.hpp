// Answers tools that ask which gRPC services and messages weir has: grpc.reflection.v1 and v1alpha.
#pragma once

#include "proxy/ask/ask_call.hpp"

#include "weir/net/task.hpp"

namespace weir::proxy {

// Serves a call of ServerReflectionInfo: answers each message as it comes, until the client ends its stream.
// `call` must outlive the task.
[[nodiscard]] net::Task<Ending> serve_grpc_reflection(AskCall& call);

}  // namespace weir::proxy
