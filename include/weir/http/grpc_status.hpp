// The status codes of gRPC calls, from 0 (OK) to 16 (UNAUTHENTICATED). A response has its status in its
// trailers. A response without messages ("trailers-only") has its status in its head.
#pragma once

#include "weir/http/head.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

inline constexpr unsigned kGrpcUnknown = 2;
inline constexpr unsigned kGrpcResourceExhausted = 8;
inline constexpr unsigned kGrpcUnavailable = 14;
inline constexpr unsigned kMostGrpcStatus = 16;

// Parses a name such as "UNAUTHENTICATED" or a number such as "16".
[[nodiscard]] std::optional<unsigned> parse_grpc_status(std::string_view text) noexcept;
// Returns the name of a status up to kMostGrpcStatus.
[[nodiscard]] std::string_view grpc_status_name(unsigned status) noexcept;
// Returns all names with their numbers: "OK (0), CANCELLED (1), …".
[[nodiscard]] std::string grpc_status_names();

// Returns the gRPC status of a response if its head decides the status. The head decides if it has the field
// grpc-status or an HTTP status other than 200, or if no trailers can follow. Otherwise returns nullopt,
// because the trailers then decide.
[[nodiscard]] std::optional<unsigned> grpc_status_in_head(const ResponseHead& head) noexcept;
// Returns the status in a trailer section. A missing or unknown status is UNKNOWN.
[[nodiscard]] unsigned grpc_status_in_trailers(std::string_view lines) noexcept;

}  // namespace weir::http
