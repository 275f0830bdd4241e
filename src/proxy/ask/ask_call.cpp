#include "proxy/ask/ask_call.hpp"

#include "proxy/ask/question_answer.hpp"
#include "proxy/exchange/scoped_cancel_target.hpp"

#include "weir/http/grpc.hpp"
#include "weir/net/use_task.hpp"
#include "weir/observe/json_text.hpp"

#include <new>
#include <utility>

namespace weir::proxy {

namespace {

// How long a call waits for the worker of a permit. Workers answer within milliseconds.
constexpr base::Duration kPatience{5'000'000};

// The reply of the worker that has a permit. The call and its jobs share the reply, because the jobs may
// outlive the call. Only the call's thread uses the members.
struct SettleReply {
  explicit SettleReply(const net::Executor& executor) : given(executor) {}
  void give(Permits::Result outcome) noexcept {
    result = outcome;
    given.notify();
  }

  net::Notification given;
  std::optional<Permits::Result> result{};
};

observe::AskResult result_of(const ask::Answer& answer) noexcept {
  if (!answer.error.empty() || answer.status == 0) return observe::AskResult::Error;
  return answer.allowed ? observe::AskResult::Allowed : observe::AskResult::Refused;
}

}  // namespace

AskCall::AskCall(ClientStream& a_client, std::shared_ptr<const AskSettings> a_settings)
    : client(a_client),
      worker(a_client.worker),
      settings_(std::move(a_settings)),
      buffers_loan_(a_client.worker.take_buffers()),
      settings(*settings_),
      buffers(*buffers_loan_) {}

AskCall::~AskCall() {
  for (const auto& permit : unsent_permits_) worker.permits().withdraw(permit);
  worker.give_back(std::move(buffers_loan_));
}

void AskCall::cancel() noexcept {
  if (question_ != nullptr) question_->cancel();
  if (departure_ != nullptr) departure_->cancel();
  if (settlement_ != nullptr) settlement_->cancel();
}

// Returns true if weir must report an error as a gRPC status. Always false on a listener for JSON: there, the
// asking proxy may pass on the fields of its client, and this client may use gRPC.
bool AskCall::is_grpc() const noexcept {
  return settings.api == AskSettings::Api::Rls && http::is_grpc(buffers.head.fields);
}

LocalError AskCall::fault_of(BodySource::Status status) const noexcept {
  if (status == BodySource::Status::TooLarge) return {413, "the body has more than 1 MiB"};
  if (status == BodySource::Status::Bad) return {400, "the body's chunks are invalid"};
  if (client.watch.late()) return {408, "the body did not come in time"};
  return {400, "the body ended too early"};
}

// Reads the whole body before one deadline, so that a slow asker cannot occupy memory for long.
net::Task<LocalError> AskCall::read_body() {
  auto& source = client.body();
  const auto length = buffers.head.framing == http::Framing::Length ? buffers.head.content_length : kMostBody;
  const auto before = source.filled();
  bool waited = false;
  if (buffers.head.content_length > kMostBody) co_return fault_of(BodySource::Status::TooLarge);
  source.allow(kMostBody);
  std::string_view piece;
  auto status = source.take(piece);
  for (; status != BodySource::Status::End; status = source.take(piece)) {
    if (status == BodySource::Status::Piece) {
      if (!buffers.inspected.append(piece, length))
        co_return LocalError{503, "too many request bodies are being read; please retry"};
      continue;
    }
    if (status != BodySource::Status::NeedBytes) break;
    if (!std::exchange(waited, true)) {
      client.watch.arm(worker.config().server.head_timeout);
      if (buffers.head.expects_continue) (void)co_await client.send_continue();
    }
    const auto ec = co_await source.fill();
    if (ec) break;
  }
  if (waited) client.watch.disarm();
  worker.counters.bytes_in.add(source.filled() - before);
  const auto fault = status == BodySource::Status::End ? LocalError{} : fault_of(status);
  client.watch.clear_late();
  co_return fault;
}

net::Task<ask::Answer> AskCall::decide(ask::Question question, observe::AskApi api) {
  const auto began = worker.clock.now();
  auto exchange = std::make_unique<QuestionExchange>(client, std::move(question));
  const ScopedCancelTarget cancel_target(question_, *exchange);
  auto answer = co_await exchange->decide();
  auto& decided = *exchange;  // must not be used after issue_permit(), which takes the exchange
  const bool may_hold = answer.allowed && api == observe::AskApi::Decide;
  const bool holds = may_hold && (decided.question().wants_permit || decided.needs_settlement());
  const bool waits = !holds && decided.question().answer_waits;
  if (holds) issue_permit(std::move(exchange), answer);
  const auto took = worker.clock.now() - began;
  worker.counters.ask.seconds.record(took);
  worker.counters.ask.questions(api, result_of(answer)).add();
  client.watch.note_work(took);
  if (waits && answer.wait > base::Duration{0}) co_await await_departure(decided, answer);
  co_return answer;
}

// Waits for the departure of an admitted request, because the asker cannot wait by itself. If the asker
// disconnects, refunds the charges and empties the answer. If weir stops, refunds the charges and answers
// 503.
net::Task<void> AskCall::await_departure(QuestionExchange& question, ask::Answer& answer) {
  net::Timer timer(worker.executor);
  timer.expires_after(answer.wait);
  net::ErrorCode cancelled;
  client.watch.begin_cancellable_wait();
  {
    const ScopedCancelTarget cancel_target(departure_, timer);
    co_await timer.async_wait(net::use_task(cancelled));
  }
  client.watch.end_cancellable_wait();
  if (client.watch.left() || client.watch.has_disconnected()) {
    question.withdraw(0, "client_left");
    answer = {};
  } else if (cancelled) {
    question.withdraw(503, "stopped");
    answer = error_answer(503, "this server is stopping; please retry");
  }
}

void AskCall::issue_permit(std::unique_ptr<QuestionExchange> question, ask::Answer& answer) {
  if (auto reservation = PermitCount::take(settings.open_permits, settings.max_permits)) {
    // reserved before add(): if memory ran out after add(), nobody would know the permit
    auto& unsent = unsent_permits_.emplace_back();
    unsent = worker.permits().add(std::move(question), std::move(*reservation), settings_);
    answer.permit = unsent;
    return;
  }
  question->withdraw(503, "permits_full");
  worker.counters.ask.permits_full.add();
  answer = error_answer(503, "too many permits are open (max_permits); settle permits, or ask again later");
}

// Asks the worker that holds the permit. That worker posts its reply as a job to this worker. If the call has
// ended by then, the reply is dropped. Returns Unreachable if that worker lacks memory, or if no reply comes
// within kPatience.
net::Task<Permits::Result> AskCall::settle(ask::SettleRequest request) {
  auto& permits = worker.permits();
  const auto owner = Permits::owner_of(request.permit);
  if (!owner) co_return Permits::Result::Unknown;
  if (*owner == permits.number()) co_return permits.settle(request, settings);
  auto reply = std::make_shared<SettleReply>(worker.executor);
  auto ask_owner = [reply, told = std::move(request), listener = settings_, back = permits.number(),
                    owners = permits.owners()](Permits& theirs) {
    auto result = Permits::Result::Unreachable;
    try {
      result = theirs.settle(told, *listener);
    } catch (const std::bad_alloc&) {  // the permit remains open
    }
    (void)owners->post(back, [reply, result](Permits&) { reply->give(result); });
  };
  if (permits.owners() == nullptr || !permits.owners()->post(*owner, std::move(ask_owner)))
    co_return Permits::Result::Unknown;
  const ScopedCancelTarget cancel_target(settlement_, reply->given);
  client.watch.arm(kPatience);
  while (!reply->result) {
    const auto ec = co_await reply->given.wait();
    if (ec) break;
  }
  client.watch.disarm();
  co_return reply->result.value_or(Permits::Result::Unreachable);
}

net::Task<Ending> AskCall::answer(http::Answer answer) {
  if (is_grpc()) {
    fields_ = answer.fields;
    http::make_trailers_only(answer, fields_);
  }
  return send(answer);
}

net::Task<Ending> AskCall::send(http::Answer answer) {
  answer.date = worker.http_date(net::Clock::machine_now());
  answer.omit_body = buffers.head.method == "HEAD";
  auto sent = client.try_answer(answer);
  if (!sent) {
    client.watch.arm(worker.config().server.write_timeout);
    sent = co_await client.finish_answer();
    client.watch.disarm();
  }
  co_return *sent ? Ending::Abort : Ending::Answered;
}

net::Task<Ending> AskCall::error(unsigned status, std::string_view what, std::string_view fields) {
  fields_ = fields;
  if (is_grpc()) {
    http::append_grpc_status(fields_, http::grpc_status_of(status), what);
    return send({.status = 200, .content_type = "application/grpc", .fields = fields_});
  }
  std::string sentence;
  observe::append_json_text(sentence, what);
  text_.clear();
  http::append_error_json(text_, status, std::string_view(sentence).substr(1, sentence.size() - 2));
  return answer({.status = status, .body = text_, .fields = fields_});
}

}  // namespace weir::proxy
