#include "weir/ask/question_json.hpp"

#include "ask/json_members.hpp"
#include "ask/json_repetition.hpp"

#include <array>
#include <utility>

#include <boost/json.hpp>

namespace weir::ask {

namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 11> kMembers{"method",     "host",    "path",           "scheme",
                                                    "ip",         "headers", "cost",           "domain",
                                                    "attributes", "permit",  "timeout_seconds"};
constexpr std::array<std::string_view, 6> kSettleMembers{"permit",  "cost", "status",
                                                         "headers", "body", "refund"};
constexpr double kMostSeconds = 3600;  // the longest timeout of a question
constexpr int kDeepest = 8;            // the deepest nesting of a JSON text; questions need 4

MemberFault take_ip(const json::value& value, Question& question) {
  std::string text;
  if (auto fault = take_text(value, "ip", text)) return fault;
  question.ip = base::IpAddress::parse(text);
  if (question.ip) return std::nullopt;
  return R"("ip" is not an IP address such as "203.0.113.7", without a port)";
}

MemberFault take_scheme(const json::value& value, Question& question) {
  std::string text;
  if (auto fault = take_text(value, "scheme", text)) return fault;
  question.secure = text == "https";
  if (question.secure || text == "http") return std::nullopt;
  return R"("scheme" is neither "http" nor "https")";
}

MemberFault take_attributes(const json::value& value, Question& question) {
  if (!value.is_object()) return R"("attributes" is not an object such as {"customer": "acme"})";
  const auto count = value.get_object().size();
  if (count > policy::kMostEntries)
    return "\"attributes\" has " + std::to_string(count) + " members; write at most " +
           std::to_string(policy::kMostEntries);
  policy::Descriptor descriptor;
  for (const auto& member : value.get_object()) {
    std::string text;
    if (member.key().empty()) return R"("attributes" has a member without a name)";
    if (auto fault = take_text(member.value(), member.key(), text))
      return "\"attributes\": " + *fault + R"(; write numbers in quotes, such as "7")";
    const auto key = question.keep(std::string(member.key()));
    descriptor.entries.push_back({key, question.keep(std::move(text))});
  }
  if (!descriptor.entries.empty()) question.descriptors.push_back(std::move(descriptor));
  return std::nullopt;
}

MemberFault take_timeout(const json::value& value, Question& question) {
  const double seconds = value.is_number() ? value.to_number<double>() : 0;
  if (!(seconds > 0 && seconds <= kMostSeconds))
    return "\"timeout_seconds\" is not a number above 0, and at most 3600";
  question.timeout = base::Duration(static_cast<std::int64_t>(seconds * 1e6) + 1);
  return std::nullopt;
}

MemberFault take_member(std::string_view name, const json::value& value, Question& question) {
  if (name == "method") return take_text(value, name, question.method);
  if (name == "host") return take_text(value, name, question.host);
  if (name == "path") return take_text(value, name, question.target);
  if (name == "scheme") return take_scheme(value, question);
  if (name == "ip") return take_ip(value, question);
  if (name == "headers") return take_headers(value, question.headers);
  if (name == "cost") return take_cost(value, 0, question.cost);
  if (name == "domain") return take_text(value, name, question.domain);
  if (name == "attributes") return take_attributes(value, question);
  if (name == "permit") return take_truth(value, name, question.wants_permit);
  if (name == "timeout_seconds") return take_timeout(value, question);
  return unknown_member(name, kMembers);
}

MemberFault take_question(const json::value& value, Question& question) {
  if (!value.is_object())
    return R"(the question is not an object such as {"path": "/", "ip": "203.0.113.7"})";
  for (const auto& [name, member] : value.get_object())
    if (auto fault = take_member({name.data(), name.size()}, member, question)) return fault;
  if (question.wants_permit && question.cost == limit::Cost{0})
    return R"("permit" is true and "cost" is 0, which charges nothing; leave one of them out)";
  return std::nullopt;
}

MemberFault take_questions(const json::value& value, QuestionList& list) {
  list.is_batch = value.is_array();
  if (!list.is_batch) return take_question(value, list.questions.emplace_back());
  const auto& array = value.get_array();
  if (array.empty() || array.size() > kMostQuestions)
    return "the array has " + std::to_string(array.size()) + " questions; write 1 to " +
           std::to_string(kMostQuestions);
  for (const auto& element : array) {
    const auto number = list.questions.size() + 1;
    if (auto fault = take_question(element, list.questions.emplace_back()))
      return "question " + std::to_string(number) + ": " + *fault;
  }
  return std::nullopt;
}

MemberFault take_status(const json::value& value, SettleRequest& request) {
  const auto* status = value.if_int64();
  if (status == nullptr || *status < 200 || *status > 599)
    return "\"status\" is not the status of a final answer such as 200, from 200 to 599";
  request.status = static_cast<unsigned>(*status);
  return std::nullopt;
}

MemberFault take_member(std::string_view name, const json::value& value, SettleRequest& request) {
  if (name == "permit") return take_text(value, name, request.permit);
  if (name == "cost") return take_cost(value, 0, request.cost);
  if (name == "status") return take_status(value, request);
  if (name == "headers") return take_headers(value, request.headers);
  if (name == "body") return take_text(value, name, request.body.emplace());
  if (name == "refund") return take_truth(value, name, request.refund);
  return unknown_member(name, kSettleMembers);
}

MemberFault fault_in(const SettleRequest& request) {
  const int ways = (request.cost ? 1 : 0) + (request.status ? 1 : 0) + (request.refund ? 1 : 0);
  if (request.permit.empty()) return "\"permit\" is missing; write the permit of the answer";
  if (ways != 1) return R"(write one of "cost", "status" and "refund": true)";
  if (!request.status && (!request.headers.empty() || request.body))
    return R"("headers" and "body" need "status")";
  return std::nullopt;
}

MemberFault take_settle_request(const json::value& value, SettleRequest& request) {
  if (!value.is_object()) return R"(the body is not an object such as {"permit": "…", "cost": 5})";
  for (const auto& [name, member] : value.get_object())
    if (auto fault = take_member({name.data(), name.size()}, member, request)) return fault;
  return fault_in(request);
}

// Parses `text`, and lets `take` fill a value from it.
template <class Value, class Take>
base::Result<Value> read(std::string_view text, Take take) {
  json::error_code ec;
  json::parse_options options;
  options.max_depth = kDeepest;
  std::array<unsigned char, 4096> room;  // large enough for most calls, so that parsing allocates nothing
  json::monotonic_resource memory(room.data(), room.size());
  const auto parsed = json::parse(json::string_view(text.data(), text.size()), ec, &memory, options);
  if (ec) return base::Error{"the body is not valid JSON: " + ec.message()};
  if (const auto name = may_repeat_members(text, parsed) ? repeated_member(text) : std::nullopt)
    return base::Error{"an object has the member " + quoted(*name) + " more than once; write it once"};
  Value read;
  if (auto fault = take(parsed, read)) return base::Error{std::move(*fault)};
  return read;
}

}  // namespace

base::Result<QuestionList> read_questions(std::string_view text) {
  return read<QuestionList>(text, take_questions);
}

base::Result<SettleRequest> read_settle_request(std::string_view text) {
  return read<SettleRequest>(text, take_settle_request);
}

}  // namespace weir::ask
