#include "proxy/ask/grpc_reflection.hpp"

#include "proxy/ask/grpc_reply.hpp"

#include "weir/ask/grpc_framing.hpp"
#include "weir/ask/grpc_services.hpp"

#include <string>

namespace weir::proxy {

namespace {

// the largest request in octets; a request contains little more than a name
constexpr std::size_t kMostRequest = 4096;

// The messages of a client's stream.
class Requests {
 public:
  explicit Requests(AskCall& call) noexcept : call_(call) {}

  // Waits for the next message, and returns it. Its text is valid until next() is called again. If there is
  // no further message, returns a message in the state Partial, and fault() says why.
  [[nodiscard]] net::Task<ask::GrpcMessage> next();
  // Returns why there is no further message. Empty: the client has ended its stream.
  [[nodiscard]] std::string_view fault() const noexcept { return fault_; }

 private:
  AskCall& call_;
  std::string octets_;
  std::size_t used_ = 0;  // octets of the last message
  std::string_view fault_;
};

net::Task<ask::GrpcMessage> Requests::next() {
  auto& source = call_.client.body();
  octets_.erase(0, used_);
  used_ = 0;
  auto message = ask::first_grpc_message(octets_, kMostRequest);
  while (message.state == ask::GrpcMessage::State::Partial) {
    std::string_view piece;
    const auto status = source.take(piece);
    if (status == BodySource::Status::NeedBytes) {
      call_.client.watch.arm(call_.worker.config().server.idle_timeout);
      const auto ec = co_await source.fill();
      call_.client.watch.disarm();
      if (!ec) continue;
      fault_ =
          call_.client.watch.late() ? "no request came within [server] idle_timeout" : "the stream broke off";
      co_return message;
    }
    if (status != BodySource::Status::Piece) {
      const bool whole = status == BodySource::Status::End && octets_.empty();
      if (!whole) fault_ = "the stream ended within a message";
      co_return message;
    }
    octets_ += piece;
    message = ask::first_grpc_message(octets_, kMostRequest);
  }
  used_ = message.consumed;
  co_return message;
}

net::Task<Ending> end_stream(AskCall& call, GrpcReply& reply, const Requests& requests) {
  if (requests.fault().empty()) return reply.finish();
  const bool late = call.client.watch.late();
  call.client.watch.clear_late();
  return reply.fail(late ? GrpcStatus::DeadlineExceeded : GrpcStatus::InvalidArgument, requests.fault());
}

}  // namespace

net::Task<Ending> serve_grpc_reflection(AskCall& call) {
  using State = ask::GrpcMessage::State;
  GrpcReply reply(call);
  Requests requests(call);
  for (;;) {
    const auto message = co_await requests.next();
    if (message.state == State::Partial) co_return co_await end_stream(call, reply, requests);
    if (message.state == State::Compressed)
      co_return co_await reply.fail(GrpcStatus::Unimplemented, kGrpcCompressed, kGrpcEncodings);
    if (message.state == State::TooLong)
      co_return co_await reply.fail(GrpcStatus::ResourceExhausted, "a request has at most 4096 octets");
    const auto answer = ask::proto_files().answer(message.text);
    if (!answer) co_return co_await reply.fail(GrpcStatus::InvalidArgument, "the message is malformed");
    reply.begin_message() += *answer;
    const auto ec = co_await reply.send();
    if (ec) co_return Ending::Abort;
  }
}

}  // namespace weir::proxy
