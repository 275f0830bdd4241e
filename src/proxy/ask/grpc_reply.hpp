// Sends the answer of one gRPC call: its messages, and the status with which the call ends. Only the worker's
// thread uses the object.
#pragma once

#include "proxy/ask/ask_call.hpp"

#include "weir/net/stream_error.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/body_sink.hpp"

#include <string>
#include <string_view>

namespace weir::proxy {

// Statuses of gRPC calls, with their numbers.
enum class GrpcStatus : unsigned {
  Ok = 0,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,
  ResourceExhausted = 8,
  Unimplemented = 12,
  Internal = 13,
};

// The error for compressed messages, and the line with the encodings that weir reads.
inline constexpr std::string_view kGrpcCompressed =
    "weir reads no compressed messages; send messages without compression";
inline constexpr std::string_view kGrpcEncodings = "grpc-accept-encoding: identity\r\n";

class GrpcReply {
 public:
  // `call` must outlive the reply.
  explicit GrpcReply(AskCall& call) noexcept : call_(call) {}
  GrpcReply(const GrpcReply&) = delete;
  GrpcReply& operator=(const GrpcReply&) = delete;

  // Returns the text to which the next message must be appended. The text already contains room for the
  // framing of the message.
  [[nodiscard]] std::string& begin_message();
  // Sends the message that begin_message() began. The call continues.
  [[nodiscard]] net::Task<net::ErrorCode> send();
  // Sends the message, if there is one, and ends the call with the status OK.
  [[nodiscard]] net::Task<Ending> finish();
  // Ends the call with another status. `what`: a sentence. `fields`: complete header lines, which are sent
  // only if no message was sent before.
  [[nodiscard]] net::Task<Ending> fail(GrpcStatus status, std::string_view what,
                                       std::string_view fields = {});

 private:
  [[nodiscard]] BodySink& sink();
  [[nodiscard]] net::Task<net::ErrorCode> flush_rest();
  [[nodiscard]] net::Task<Ending> finish_rest();
  [[nodiscard]] net::Task<Ending> end(std::string_view trailers);
  void count_sent() noexcept;

  AskCall& call_;
  BodySink* sink_ = nullptr;  // null: nothing was sent
  bool has_message_ = false;
  std::string status_;  // the lines that fail() sends: as trailers, or in the head if no message was sent
};

}  // namespace weir::proxy
