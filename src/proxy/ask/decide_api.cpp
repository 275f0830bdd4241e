#include "proxy/ask/decide_api.hpp"

#include "proxy/ask/forward_auth.hpp"

#include "weir/ask/answer_json.hpp"
#include "weir/ask/question_json.hpp"

#include <utility>
#include <vector>

namespace weir::proxy {

namespace {

constexpr std::string_view kOpenApi =
#include "proxy/ask/openapi.json.inc"
    ;

// Returns the status of the answer to the call: 200 if weir has decided, whatever the decision.
unsigned call_status(const ask::Answer& answer) noexcept {
  return answer.error.empty() ? 200 : answer.status;
}

// POST /v1/decide: decides about one question, or about each question of an array in turn.
net::Task<Ending> serve_questions(AskCall& call) {
  auto& wrong_calls = call.worker.counters.ask.questions(observe::AskApi::Decide, observe::AskResult::Error);
  const auto fault = co_await call.read_body();
  if (fault) {
    wrong_calls.add();
    co_return co_await call.error(fault.status, fault.what);
  }
  auto list = ask::read_questions(call.body());
  if (!list) {
    wrong_calls.add();
    co_return co_await call.error(400, list.error().message);
  }
  std::vector<ask::Answer> answers;
  answers.reserve(list->questions.size());
  for (auto& question : list->questions) {
    auto decision = call.decide(std::move(question), observe::AskApi::Decide);
    answers.push_back(co_await decision);
    if (answers.back().status == 0) co_return Ending::Close;
  }
  std::string text;
  if (list->is_batch)
    ask::append_answers_json(text, answers);
  else
    ask::append_answer_json(text, answers.front());
  const auto status = list->is_batch ? 200 : call_status(answers.front());
  const auto ending = co_await call.answer({.status = status, .body = text});
  if (ending == Ending::Answered) call.keep_permits();
  co_return ending;
}

// POST /v1/settle: settles or refunds the charges of a permit.
net::Task<Ending> serve_settlement(AskCall& call) {
  const auto fault = co_await call.read_body();
  if (fault) co_return co_await call.error(fault.status, fault.what);
  auto request = ask::read_settle_request(call.body());
  if (!request) co_return co_await call.error(400, request.error().message);
  auto settlement = call.settle(std::move(*request));
  const auto result = co_await settlement;
  switch (result) {
    case Permits::Result::Settled:
      co_return co_await call.answer({.status = 200, .body = "{\"settled\":true}"});
    case Permits::Result::Unknown:
      co_return co_await call.error(404,
                                    "there is no such permit here; it was settled before, its time has "
                                    "passed, or another listener gave it");
    case Permits::Result::BadHeaders:
      co_return co_await call.error(400, "\"headers\" are not valid header fields of an answer");
    case Permits::Result::Unreachable:
      break;
  }
  co_return co_await call.error(503,
                                "the settlement was not confirmed in time; it may take place nevertheless");
}

// GET /v1/openapi.json: describes this API for programs.
net::Task<Ending> serve_openapi(AskCall& call) {
  return call.answer({.status = 200, .body = kOpenApi, .no_store = false});
}

using Serve = net::Task<Ending> (*)(AskCall&);

struct Endpoint {
  std::string_view path;
  std::string_view method;  // empty: any
  Serve serve;
  bool for_programs = false;  // true: weir refuses browsers, whose pages may come from any site
};

// Returns true if the call has a field that browsers add to the requests of pages. Must not be used for
// forward authentication: the asking proxy passes on the fields of its client, which may be a browser.
bool is_from_browser(const http::Fields& fields) noexcept {
  return http::find_field(fields, "origin") != nullptr ||
         http::find_field(fields, "sec-fetch-site") != nullptr;
}

constexpr Endpoint kEndpoints[] = {
    {"/v1/decide", "POST", serve_questions, true},
    {"/v1/settle", "POST", serve_settlement, true},
    {kForwardAuthPath, "", serve_forward_auth},
    {"/v1/openapi.json", "GET", serve_openapi},
};

}  // namespace

net::Task<Ending> serve_decide(AskCall& call) {
  const auto& head = call.buffers.head;
  for (const auto& endpoint : kEndpoints) {
    if (endpoint.path != head.path) continue;
    if (endpoint.for_programs && is_from_browser(head.fields))
      return call.error(403, "this path is for programs, and the call comes from a page in a browser");
    if (endpoint.method.empty() || endpoint.method == head.method) return endpoint.serve(call);
    const std::string method(endpoint.method);
    return call.error(405, "this path accepts only " + method, "Allow: " + method + "\r\n");
  }
  return call.error(
      404,
      "there is no such path; this listener answers /v1/decide, /v1/settle, /v1/forward-auth and "
      "/v1/openapi.json");
}

}  // namespace weir::proxy
