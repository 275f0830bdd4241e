#include "cli/admin_json.hpp"

#include <stdexcept>
#include <utility>

#include <boost/json.hpp>

namespace weir::cli {

namespace json = boost::json;

json::object object_in(const AdminReply& reply) {
  json::error_code ec;
  auto reply_json = json::parse(reply.body, ec);
  if (ec || !reply_json.is_object())
    throw std::runtime_error("it returns " + std::to_string(reply.status) + " without JSON");
  return std::move(reply_json.as_object());
}

std::string message_in(const json::object& reply_json, const AdminReply& reply) {
  const auto* message = reply_json.if_contains("message");
  return message != nullptr && message->is_string() ? message->as_string().c_str() : reply.body;
}

std::vector<std::string> texts_in(const json::object& reply_json, std::string_view name) {
  std::vector<std::string> texts;
  const auto* list = reply_json.if_contains(json::string_view(name.data(), name.size()));
  if (list == nullptr || !list->is_array()) return texts;
  for (const auto& one : list->as_array())
    if (one.is_string()) texts.emplace_back(one.as_string().c_str());
  return texts;
}

std::string why_unauthorized(std::string_view token) {
  return token.empty() ? "it requires its token; write --token TOKEN or --config FILE"
                       : "it has another token; write its own with --token TOKEN or --config FILE";
}

}  // namespace weir::cli
