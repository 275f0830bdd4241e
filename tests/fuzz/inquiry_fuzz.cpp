// Fuzzes the text of POST /api/explain. Any text must be rejected with a sentence, or be read as a request.
// If that request is written as JSON, it must be read as the same request again.
#include "admin/pages/explain_request_reader.hpp"
#include "fuzz/input.hpp"

#include <string_view>
#include <tuple>

#include <boost/json.hpp>

namespace weir::fuzz {
namespace {

namespace json = boost::json;

auto parts_of(const policy::ExplainRequest& explain_request) {
  return std::tie(explain_request.method, explain_request.host, explain_request.target, explain_request.peer,
                  explain_request.headers, explain_request.body, explain_request.certificate_subject);
}

bool same_question(const policy::ExplainRequest& one, const policy::ExplainRequest& other) {
  if (!one.question || !other.question) return one.question.has_value() == other.question.has_value();
  const auto& [domain, descriptor, exact, cost] = *one.question;
  return domain == other.question->domain && descriptor == other.question->descriptor &&
         exact == other.question->exact && cost == other.question->cost;
}

std::string written(const policy::ExplainRequest& explain_request) {
  json::object headers;
  for (const auto& [name, value] : explain_request.headers) {
    auto& lines = headers[name];
    if (lines.is_null()) lines = json::array();
    lines.as_array().emplace_back(value);
  }
  json::object said{
      {"method", explain_request.method},       {"path", explain_request.target},
      {"ip", explain_request.peer.to_string()}, {"headers", std::move(headers)},
      {"body", explain_request.body},           {"certificate", explain_request.certificate_subject}};
  if (explain_request.host) said["host"] = *explain_request.host;
  if (const auto& question = explain_request.question) {
    json::object descriptor;
    for (const auto& [key, value] : question->descriptor) descriptor[key] = value;
    said["domain"] = question->domain;
    said["descriptor"] = std::move(descriptor);
    said["exact"] = question->exact;
    if (question->cost) said["cost"] = *question->cost;
  }
  return json::serialize(said);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  policy::ExplainRequest explain_request;
  if (const auto fault = admin::read_explain_request(text, explain_request)) {
    fuzz::require(!fault->empty(), "a fault is a sentence");
    return 0;
  }
  policy::ExplainRequest again;
  fuzz::require(!admin::read_explain_request(fuzz::written(explain_request), again),
                "what was read is a request still");
  fuzz::require(fuzz::parts_of(explain_request) == fuzz::parts_of(again), "and the same one");
  fuzz::require(fuzz::same_question(explain_request, again), "with the same question");
  return 0;
}
