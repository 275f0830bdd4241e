// Fuzzes what askers send: messages of gRPC calls, health checks and reflection, and the JSON of questions
// and settlements. weir must read each text or return an error. The texts that it finds in a message must lie
// within the message. The head that it makes of a question must be rejected, or have the values of the
// question.
#include "fuzz/input.hpp"

#include "weir/ask/grpc_framing.hpp"
#include "weir/ask/grpc_services.hpp"
#include "weir/ask/question_json.hpp"
#include "weir/ask/rls.hpp"
#include "weir/http/head_parser.hpp"

#include <string_view>

namespace weir::fuzz {
namespace {

bool lies_in(std::string_view message, std::string_view text) {
  return text.empty() ||
         (text.data() >= message.data() && text.data() + text.size() <= message.data() + message.size());
}

void read(std::string_view message) {
  if (const auto call = ask::read_rls_call(message)) {
    require(!call->descriptors.empty() && call->descriptors.size() <= ask::kMostDescriptors,
            "few descriptors");
    require(lies_in(message, call->domain), "the domain is in the message");
    require(!call->hits || (*call->hits >= 1 && *call->hits <= limit::kMaxCost), "a possible cost");
    for (const auto& descriptor : call->descriptors)
      for (const auto& entry : descriptor.entries)
        require(!entry.key.empty() && lies_in(message, entry.key) && lies_in(message, entry.value),
                "entries");
  }
  if (const auto service = ask::health_service(message)) require(lies_in(message, *service), "the service");
  (void)ask::proto_files().answer(message);
}

void check(const ask::Question& question) {
  const auto text = ask::request_head(question);
  http::RequestHead head;
  if (!text || http::parse_request_head(*text, head)) return;
  require(head.method == question.method, "the head has the method of the question");
  require(head.target == question.target, "the head has the path of the question");
  const auto own = question.host.empty() ? 0U : 1U;
  require(head.fields.size() == question.headers.size() + own, "the head has no further fields");
}

void check(const ask::SettleRequest& request) {
  const int told = (request.cost ? 1 : 0) + (request.status ? 1 : 0) + (request.refund ? 1 : 0);
  require(told == 1, "a settlement says one thing");
  require(!request.permit.empty(), "a settlement names its permit");
}

void read_json(std::string_view text) {
  if (const auto list = ask::read_questions(text)) {
    require(!list->questions.empty() && list->questions.size() <= ask::kMostQuestions, "a call is bounded");
    for (const auto& question : list->questions) check(question);
  } else {
    require(!list.error().message.empty(), "a fault is a sentence");
  }
  if (const auto request = ask::read_settle_request(text))
    check(*request);
  else
    require(!request.error().message.empty(), "a fault is a sentence");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  std::string_view octets(reinterpret_cast<const char*>(bytes), size);
  fuzz::read_json(octets);
  fuzz::read(octets);
  for (auto message = ask::first_grpc_message(octets, 1 << 16);
       message.state == ask::GrpcMessage::State::Whole; message = ask::first_grpc_message(octets, 1 << 16)) {
    fuzz::require(message.consumed == message.text.size() + 5, "framing has five octets");
    fuzz::read(message.text);
    octets.remove_prefix(message.consumed);
  }
  return 0;
}
