#include "proxy/ask/question_stream.hpp"

#include <exception>
#include <utility>

namespace weir::proxy {

QuestionStream::QuestionStream(ClientStream& asker, ClientWatch& a_watch, ask::Question question)
    : ClientStream(asker.worker, a_watch, client_),
      question_(std::move(question)),
      client_(question_.ip.value_or(asker.peer.address)),
      asker_(&asker),
      inbox_(asker.worker.blocks),
      source_(*this, inbox_, http::Framing::None, 0) {
  body_ = &source_;
}

// A question has no body, even if its fields announce one. So weir reads nothing. The head keeps the
// announced length, so that weir still refuses a length above a bound.
std::optional<http::Fault> QuestionStream::read_head(http::RequestHead& head) {
  auto text = ask::request_head(question_);
  if (!text) return http::Fault{400, "the question contains a line break or a NUL byte"};
  head_text_ = std::move(*text);
  if (auto fault = http::parse_request_head(head_text_, head)) return fault;
  head.framing = http::Framing::None;
  head.expects_continue = false;
  return std::nullopt;
}

std::optional<net::ErrorCode> QuestionStream::try_answer(http::Answer answer) {
  refusal_.status = answer.status;
  refusal_.fields = answer.fields;
  refusal_.content_type = answer.content_type;
  refusal_.body = answer.body;
  return net::ErrorCode{};
}

net::Task<net::ErrorCode> QuestionStream::finish_answer() {
  return net::Task<net::ErrorCode>::ended({});
}

net::Task<net::ErrorCode> QuestionStream::send_continue() {
  return net::Task<net::ErrorCode>::ended({});
}

net::Task<net::ErrorCode> QuestionStream::send_interim(const http::ResponseHead&) {
  return net::Task<net::ErrorCode>::ended({});
}

BodySink& QuestionStream::begin_answer(const http::ResponseHead&, const AnswerAdditions&) {
  std::terminate();  // never called, because Exchange::apply_decision() forwards no question
}

net::Task<net::ErrorCode> QuestionStream::send_upgrade(const http::ResponseHead&, std::string_view,
                                                       std::string_view) {
  std::terminate();
}

ClientStream::Octets QuestionStream::octets() noexcept {
  std::terminate();
}

net::Task<std::size_t> QuestionStream::read_some(char*, std::size_t, net::ErrorCode& ec) {
  ec = net::asio::error::eof;
  return net::Task<std::size_t>::ended(0);
}

}  // namespace weir::proxy
