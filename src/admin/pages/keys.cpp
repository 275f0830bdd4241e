// GET and DELETE /api/keys?rule=R&key=A&key=B: shows the state of one key, or resets the key.
#include "admin/pages/limit_json.hpp"
#include "admin/pages/pages.hpp"
#include "admin/pages/query.hpp"

#include "weir/observe/json_value.hpp"

#include <string>
#include <utility>

namespace weir::admin {

namespace {

namespace json = boost::json;

// Reads the query into `question`. Returns a sentence that says what is wrong with the query; empty if
// nothing is wrong.
std::string read_question(std::string_view query, KeyRequest& question) {
  while (!query.empty()) {
    auto [name, value] = take_parameter(query);
    if (name == "key")
      question.key.push_back(std::move(value));
    else if (name == "rule" && question.rule.empty())
      question.rule = std::move(value);
    else
      return "there is no parameter \"" + name + "\"; write rule once, and key for each part of its key";
  }
  return question.rule.empty() ? "the parameter rule is missing; write ?rule=login&key=203.0.113.7" : "";
}

}  // namespace

net::Task<Answer> answer_keys(const Sources& sources, const PageRequest& request, const net::Executor&) {
  KeyRequest question{.rule = {}, .key = {}, .reset = request.method == "DELETE", .peer = request.peer};
  const auto fault = read_question(query_of(request), question);
  if (!fault.empty()) co_return error_answer(400, "bad_request", fault);
  const auto rule = question.rule;
  auto pending = sources.keys(std::move(question));
  const auto answer = co_await std::move(pending);
  if (answer.status != 200)
    co_return error_answer(answer.status,
                           answer.status == 404   ? "not_found"
                           : answer.status == 409 ? "under_way"
                           : answer.status == 503 ? "unavailable"
                                                  : "bad_request",
                           answer.error);
  json::array limits;
  for (const auto& limit : answer.limits) limits.push_back(limit_json(limit));
  json::object body{{"rule", rule}, {"key", texts_json(answer.key)}, {"limits", std::move(limits)}};
  if (answer.reset) body["reset"] = true;
  co_return Answer{.status = 200, .body = observe::json_text(body)};
}

}  // namespace weir::admin
