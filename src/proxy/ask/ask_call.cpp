#include "proxy/ask/ask_call.hpp"

#include "proxy/exchange/scoped_cancel_target.hpp"

#include "weir/http/grpc.hpp"
#include "weir/observe/json_text.hpp"

#include <utility>

namespace weir::proxy {

namespace {

observe::AskResult result_of(const ask::Answer& answer) noexcept {
  if (!answer.error.empty() || answer.status == 0) return observe::AskResult::Error;
  return answer.allowed ? observe::AskResult::Allowed : observe::AskResult::Refused;
}

}  // namespace

AskCall::AskCall(ClientStream& a_client, std::shared_ptr<const AskSettings> a_settings)
    : client(a_client),
      worker(a_client.worker),
      settings_(std::move(a_settings)),
      loan_(a_client.worker.take_buffers()),
      settings(*settings_),
      buffers(*loan_) {}

AskCall::~AskCall() {
  worker.give_back(std::move(loan_));
}

void AskCall::cancel() noexcept {
  if (question_ != nullptr) question_->cancel();
}

LocalError AskCall::fault_of(BodySource::Status status) const noexcept {
  if (status == BodySource::Status::TooLarge) return {413, "the body has more than 1 MiB"};
  if (status == BodySource::Status::Bad) return {400, "the body's chunks are invalid"};
  if (client.watch.late()) return {408, "the body did not come in time"};
  return {400, "the body ended too early"};
}

net::Task<LocalError> AskCall::read_body() {
  auto& source = client.body();
  const auto length = buffers.head.framing == http::Framing::Length ? buffers.head.content_length : kMostBody;
  const auto before = source.filled();
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
    client.watch.arm(worker.config().server.head_timeout);
    if (buffers.head.expects_continue && source.received() == 0) (void)co_await client.send_continue();
    const auto ec = co_await source.fill();
    client.watch.disarm();
    if (ec) break;
  }
  worker.counters.bytes_in.add(source.filled() - before);
  co_return status == BodySource::Status::End ? LocalError{} : fault_of(status);
}

net::Task<ask::Answer> AskCall::decide(ask::Question question, observe::AskApi api) {
  const auto began = worker.clock.now();
  auto exchange = std::make_unique<QuestionExchange>(client, std::move(question));
  const ScopedCancelTarget cancel_target(question_, *exchange);
  auto answer = co_await exchange->decide();
  const auto took = worker.clock.now() - began;
  worker.counters.ask.seconds.record(took);
  worker.counters.ask.questions(api, result_of(answer)).add();
  client.watch.note_work(took);
  co_return answer;
}

net::Task<Ending> AskCall::answer(http::Answer answer) {
  answer.date = worker.http_date(net::Clock::machine_now());
  answer.omit_body = buffers.head.method == "HEAD";
  if (http::is_grpc(buffers.head.fields)) {
    fields_ = answer.fields;
    http::make_trailers_only(answer, fields_);
  }
  auto sent = client.try_answer(answer);
  if (!sent) {
    client.watch.arm(worker.config().server.write_timeout);
    sent = co_await client.finish_answer();
    client.watch.disarm();
  }
  co_return *sent ? Ending::Abort : Ending::Answered;
}

net::Task<Ending> AskCall::error(unsigned status, std::string_view what, std::string_view fields) {
  std::string sentence;
  observe::append_json_text(sentence, what);
  text_.clear();
  http::append_error_json(text_, status, std::string_view(sentence).substr(1, sentence.size() - 2));
  return answer({.status = status, .body = text_, .fields = fields});
}

}  // namespace weir::proxy
