#include "proxy/ask/grpc_reply.hpp"

#include "weir/ask/grpc_framing.hpp"
#include "weir/http/grpc.hpp"

namespace weir::proxy {

namespace {

constexpr std::string_view kType = "application/grpc";
constexpr std::string_view kTypeLine = "content-type: application/grpc\r\n";
constexpr std::string_view kOkLine = "grpc-status: 0\r\n";

}  // namespace

std::string& GrpcReply::begin_message() {
  has_message_ = true;
  return call_.buffers.text.assign(ask::kGrpcFraming, '\0');
}

// Returns the sink of the answer. The first call creates it, and the head of the answer.
BodySink& GrpcReply::sink() {
  if (sink_ != nullptr) return *sink_;
  auto& head = call_.buffers.response;
  head.clear();
  head.status = 200;
  head.framing = http::Framing::Chunked;
  const auto date = call_.worker.http_date(net::Clock::machine_now());
  sink_ = &call_.client.begin_answer(head, {.fields = kTypeLine, .date = date, .trailers_may_follow = true});
  return *sink_;
}

net::Task<net::ErrorCode> GrpcReply::send() {
  auto& out = sink();
  ask::write_grpc_framing(call_.buffers.text);
  out.add(call_.buffers.text);
  has_message_ = false;
  net::ErrorCode ec;
  if (out.flush(ec) || ec) return net::Task<net::ErrorCode>::ended(ec);
  return flush_rest();
}

net::Task<net::ErrorCode> GrpcReply::flush_rest() {
  net::ErrorCode ec;
  call_.client.watch.arm(call_.worker.config().server.write_timeout);
  bool flushed = false;
  while (!flushed && !ec) {
    ec = co_await sink_->wait_for_room();
    if (!ec) flushed = sink_->flush(ec);
  }
  call_.client.watch.disarm();
  co_return ec;
}

net::Task<Ending> GrpcReply::finish() {
  return end(kOkLine);
}

net::Task<Ending> GrpcReply::fail(GrpcStatus status, std::string_view what, std::string_view fields) {
  has_message_ = false;
  if (sink_ == nullptr) status_ = fields;
  http::append_grpc_status(status_, static_cast<unsigned>(status), what);
  if (sink_ != nullptr) return end(status_);
  return call_.send({.status = 200, .content_type = kType, .fields = status_});
}

net::Task<Ending> GrpcReply::end(std::string_view trailers) {
  auto& out = sink();
  if (has_message_) {
    ask::write_grpc_framing(call_.buffers.text);
    out.add(call_.buffers.text);
  }
  out.end(trailers);
  net::ErrorCode ec;
  const bool flushed = out.flush(ec);
  if (!flushed && !ec) return finish_rest();
  count_sent();
  return net::Task<Ending>::ended(ec ? Ending::Abort : Ending::Answered);
}

net::Task<Ending> GrpcReply::finish_rest() {
  const auto ec = co_await flush_rest();
  count_sent();
  co_return ec ? Ending::Abort : Ending::Answered;
}

void GrpcReply::count_sent() noexcept {
  call_.worker.counters.bytes_out.add(sink_->sent());
}

}  // namespace weir::proxy
