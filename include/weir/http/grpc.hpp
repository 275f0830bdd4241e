// The parts of gRPC over HTTP/2 that weir knows: refusals that gRPC clients understand, and the deadline of a
// call. The protocol is described in "gRPC over HTTP2" on grpc.io.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/answer.hpp"
#include "weir/http/head.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

// Returns true for "application/grpc", also with a subtype ("application/grpc+proto") or parameters.
[[nodiscard]] bool is_grpc_type(std::string_view content_type) noexcept;
// Returns true if the request is a gRPC call by its Content-Type.
[[nodiscard]] bool is_grpc(const Fields& fields) noexcept;
// Returns true if the request is a gRPC call whose messages are in protobuf: its Content-Type has the subtype
// "+proto" or none.
[[nodiscard]] bool is_grpc_in_protobuf(const Fields& fields) noexcept;

// Returns the grpc-status that corresponds to an HTTP status of weir's own: 8 for 429, 14 for 503.
[[nodiscard]] unsigned grpc_status_of(unsigned status) noexcept;

// Appends the lines of grpc-status and grpc-message, with which each gRPC call ends. An empty message gets no
// line.
void append_grpc_status(std::string& fields, unsigned grpc_status, std::string_view message);

// Turns the answer into a trailers-only response: HTTP status 200, no body, and the fields grpc-status,
// grpc-message and grpc-retry-pushback-ms (if a retry may help). `fields` must hold the answer's fields. The
// gRPC fields are appended to `fields`, and the answer then refers to `fields`. The grpc-message is the
// message of the answer's JSON body.
void make_trailers_only(Answer& answer, std::string& fields);

// Returns the deadline that the call asks for (grpc-timeout: up to 8 digits and a unit). Returns nullopt if
// the field is missing or invalid.
[[nodiscard]] std::optional<base::Duration> grpc_timeout(const Fields& fields) noexcept;

}  // namespace weir::http
