#include "proxy/ask/rls_service.hpp"

#include "proxy/ask/grpc_reflection.hpp"
#include "proxy/ask/grpc_reply.hpp"

#include "weir/ask/grpc_framing.hpp"
#include "weir/ask/grpc_services.hpp"
#include "weir/ask/rls.hpp"
#include "weir/http/grpc.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

namespace {

// Returns true if weir can say whether the request may pass. If weir itself failed, the asker must decide.
bool is_decided(const ask::Answer& answer) noexcept {
  return answer.status != 0 && !answer.failed;
}

ask::RlsStatus status_of(const ask::DescriptorStatus& descriptor) noexcept {
  ask::RlsStatus status{.over_limit = !descriptor.allowed};
  if (!descriptor.rule.empty())
    status.limit = {.rule = descriptor.rule,
                    .units = descriptor.limit,
                    .period = descriptor.window,
                    .remaining = descriptor.remaining,
                    .reset_after = descriptor.reset_after};
  return status;
}

// Returns true if the question charges nothing: the asker only wants to know whether each descriptor is
// within its limits.
bool only_checks(const ask::Question& question) noexcept {
  return std::all_of(question.descriptors.begin(), question.descriptors.end(),
                     [](const policy::Descriptor& descriptor) { return descriptor.cost == limit::Cost{0}; });
}

// Returns true if clients must see the fields of `a` rather than those of `b`. A refusal precedes an
// admission. Among refusals, the longest wait comes first; among admissions, the smallest remaining share.
bool precedes(const ask::Answer& a, const ask::Answer& b) noexcept {
  if (a.allowed != b.allowed) return !a.allowed;
  constexpr auto kNever = std::numeric_limits<std::uint64_t>::max();
  if (!a.allowed) return a.retry_after_seconds.value_or(kNever) > b.retry_after_seconds.value_or(kNever);
  const auto share = [](const ask::Answer& answer) {
    const auto limit = static_cast<double>(answer.limit.value_or(0));
    return limit > 0 ? static_cast<double>(answer.remaining.value_or(0)) / limit : 1.0;
  };
  return share(a) < share(b);
}

// One call of ShouldRateLimit. Lives in the coroutine that serves it.
class RlsDecision {
 public:
  RlsDecision(AskCall& call, ask::RlsCall&& rls)
      : call_(call),
        rls_(std::move(rls)),
        began_(call.worker.clock.now()),
        timeout_(http::grpc_timeout(call.buffers.head.fields)) {}

  // Decides about all descriptors. Returns null if weir has decided. Otherwise returns an answer that says
  // why weir could not decide. The status of that answer is 0 if the asker has disconnected.
  [[nodiscard]] net::Task<const ask::Answer*> run();
  // Appends the RateLimitResponse.
  void append_answer(std::string& out) const;

 private:
  [[nodiscard]] ask::Question next_question();

  AskCall& call_;
  ask::RlsCall rls_;
  base::TimePoint began_;
  std::optional<base::Duration> timeout_;  // how long the asker waits, from `began_`
  std::size_t asked_ = 0;  // how many descriptors next_question() has put into questions so far
  std::vector<ask::Answer> answers_;
};

// Returns the question about all descriptors, or about the next one if each is charged by itself.
ask::Question RlsDecision::next_question() {
  ask::Question question;
  question.domain = rls_.domain;
  question.cost = rls_.hits;
  question.answer_waits = true;
  // the views remain valid, because the call's body outlives the decision
  if (call_.settings.together)
    question.descriptors = std::move(rls_.descriptors);
  else
    question.descriptors.push_back(std::move(rls_.descriptors[asked_]));
  asked_ += question.descriptors.size();
  if (only_checks(question)) question.cost = 0;
  if (timeout_) {
    const auto left = *timeout_ - (call_.worker.clock.now() - began_);
    question.timeout = std::max(left, base::Duration{1});
  }
  return question;
}

net::Task<const ask::Answer*> RlsDecision::run() {
  const auto count = rls_.descriptors.size();
  answers_.reserve(call_.settings.together ? 1 : count);
  while (asked_ < count) {
    auto decision = call_.decide(next_question(), observe::AskApi::Rls);
    answers_.push_back(co_await decision);
    if (!is_decided(answers_.back())) co_return &answers_.back();
  }
  co_return nullptr;
}

void RlsDecision::append_answer(std::string& out) const {
  boost::container::static_vector<ask::RlsStatus, ask::kMostDescriptors> statuses;
  for (const auto& answer : answers_)
    for (const auto& descriptor : answer.descriptors) statuses.push_back(status_of(descriptor));
  const auto& first = *std::min_element(answers_.begin(), answers_.end(), precedes);
  ask::RlsAnswer answer{.over_limit = !first.allowed,
                        .statuses = {statuses.data(), statuses.size()},
                        .fields = first.fields,
                        .body = first.body};
  std::string fields;
  if (!first.body.empty()) {
    fields.append(first.fields).append("Content-Type: ").append(first.content_type).append("\r\n");
    answer.fields = fields;
  }
  ask::append_rls_answer(out, answer);
}

// Counts a call of ShouldRateLimit that weir cannot read.
void count_wrong_call(AskCall& call) noexcept {
  call.worker.counters.ask.questions(observe::AskApi::Rls, observe::AskResult::Error).add();
}

net::Task<Ending> limit_rate(AskCall& call, GrpcReply& reply, std::string_view message) {
  auto rls = ask::read_rls_call(message);
  if (!rls) {
    count_wrong_call(call);
    co_return co_await reply.fail(GrpcStatus::InvalidArgument, rls.error().message);
  }
  RlsDecision decision(call, std::move(*rls));
  const auto* undecided = co_await decision.run();
  if (undecided == nullptr) {
    decision.append_answer(reply.begin_message());
    co_return co_await reply.finish();
  }
  if (undecided->status == 0) co_return Ending::Close;
  if (!undecided->error.empty()) co_return co_await call.error(undecided->status, undecided->error);
  co_return co_await call.answer(
      {.status = undecided->status, .body = undecided->body, .fields = undecided->fields});
}

net::Task<Ending> check_health(AskCall& call, GrpcReply& reply, std::string_view message) {
  const auto service = ask::health_service(message);
  if (!service) return reply.fail(GrpcStatus::InvalidArgument, "the message is malformed");
  const auto& known = ask::proto_files().services();
  if (!service->empty() && std::find(known.begin(), known.end(), *service) == known.end())
    return reply.fail(GrpcStatus::NotFound, "weir has no such service");
  const bool ends = call.worker.draining || call.worker.stopping;
  ask::append_health(reply.begin_message(), ends ? ask::GrpcHealth::NotServing : ask::GrpcHealth::Serving);
  return reply.finish();
}

struct UnaryMethod {
  std::string_view path;
  net::Task<Ending> (*serve)(AskCall&, GrpcReply&, std::string_view message);
};

constexpr UnaryMethod kUnaryMethods[] = {
    {"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", limit_rate},
    {"/grpc.health.v1.Health/Check", check_health},
};

constexpr std::string_view kReflection[] = {
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
};

// Reads the message of the call, and serves the call.
net::Task<Ending> serve_unary(AskCall& call, const UnaryMethod& method) {
  using State = ask::GrpcMessage::State;
  const auto fault = co_await call.read_body();
  const auto message = fault ? ask::GrpcMessage{} : ask::first_grpc_message(call.body(), AskCall::kMostBody);
  const bool is_one = message.state == State::Whole && message.consumed == call.body().size();
  if (!is_one && method.serve == limit_rate) count_wrong_call(call);
  if (fault) co_return co_await call.error(fault.status, fault.what);
  GrpcReply reply(call);
  if (message.state == State::Compressed)
    co_return co_await reply.fail(GrpcStatus::Unimplemented, kGrpcCompressed, kGrpcEncodings);
  if (message.state == State::TooLong)
    co_return co_await reply.fail(GrpcStatus::ResourceExhausted, "the message has more than 1 MiB");
  if (!is_one)
    co_return co_await reply.fail(GrpcStatus::InvalidArgument,
                                  "the call must have exactly one whole message");
  co_return co_await method.serve(call, reply, message.text);
}

// Returns true if weir can read the encoding of the messages and the deadline of a call.
bool is_readable(const http::Fields& fields) noexcept {
  const bool has_deadline = http::find_field(fields, "grpc-timeout") != nullptr;
  return http::is_grpc_in_protobuf(fields) && (!has_deadline || http::grpc_timeout(fields));
}

// Fails a call that is not readable, as the libraries of gRPC do.
net::Task<Ending> refuse_unreadable(AskCall& call) {
  GrpcReply reply(call);
  if (!http::is_grpc_in_protobuf(call.buffers.head.fields))
    co_return co_await reply.fail(
        GrpcStatus::Unimplemented,
        "messages must be in protobuf; send content-type application/grpc or application/grpc+proto");
  co_return co_await reply.fail(GrpcStatus::Internal,
                                "grpc-timeout is malformed; write 1 to 8 digits and a unit, such as 250m");
}

}  // namespace

net::Task<Ending> serve_rls(AskCall& call) {
  const auto& head = call.buffers.head;
  if (!http::is_grpc(head.fields)) return call.error(415, "this listener serves only gRPC calls");
  if (head.method != "POST") return call.error(405, "a gRPC call is a POST request", "Allow: POST\r\n");
  if (!is_readable(head.fields)) {
    if (head.path == kUnaryMethods[0].path) count_wrong_call(call);
    return refuse_unreadable(call);
  }
  for (const auto& method : kUnaryMethods)
    if (method.path == head.path) return serve_unary(call, method);
  if (std::find(std::begin(kReflection), std::end(kReflection), head.path) != std::end(kReflection))
    return serve_grpc_reflection(call);
  return call.error(
      404,
      "weir has no such method; it serves ShouldRateLimit of "
      "envoy.service.ratelimit.v3.RateLimitService, Check of grpc.health.v1.Health, and reflection");
}

}  // namespace weir::proxy
