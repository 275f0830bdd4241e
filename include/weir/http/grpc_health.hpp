// The gRPC health checking protocol (grpc.health.v1 of grpc.io): the request that asks a server whether a
// service works, and what its response means. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::http {

// Returns the request as HTTP/1.1 text. `host`: the server's host. `service`: the name of the service; empty:
// the whole server.
[[nodiscard]] std::string grpc_health_request(std::string_view host, std::string_view service);

// The maximum size of a response in octets, including heads and framing.
inline constexpr std::size_t kMostGrpcHealth = 16 << 10;

// Returns what is wrong with the service or with the response, as text for the log: "it returns 503", "its
// grpc-status is 12", "it is NOT_SERVING". Returns an empty text if the response says that the service works.
// `response`: the whole response, as Http2ResponseText writes it.
[[nodiscard]] std::string grpc_health_fault(std::string_view response);

}  // namespace weir::http
