#include "replay/beyond.hpp"

#include <algorithm>
#include <array>

namespace weir::replay {

namespace {

using policy::Attribute;

bool is_hidden(const std::string& parameter, const policy::ClientSettings& client) {
  const std::array sources{&client.api_key, &client.user, &client.org, &client.service, &client.device};
  return std::any_of(sources.begin(), sources.end(), [&](const policy::Source* source) {
    return source->kind == policy::Source::Kind::Query && source->name == parameter;
  });
}

std::string beyond_log(const policy::AttributeRef& attribute, const policy::ClientSettings& client) {
  switch (attribute.kind) {
    case Attribute::Header:
      return "the header " + attribute.name;
    case Attribute::Cookie:
      return "the cookie " + attribute.name;
    case Attribute::Claim:
      return "the claim " + attribute.name;
    case Attribute::CertSubject:
      return "the client's certificate";
    case Attribute::Query:
      return is_hidden(attribute.name, client) ? "the credential in the query" : "";
    default:
      return "";
  }
}

}  // namespace

std::string beyond_log(const policy::Match& match, const policy::ClientSettings& client) {
  if (!match.headers.empty()) return "the header " + match.headers.front().name;
  if (!match.body_words.empty()) return "the body";
  for (const auto& parameter : match.query)
    if (is_hidden(parameter.name, client)) return "the credential in the query";
  return match.negated ? beyond_log(*match.negated, client) : "";
}

std::string beyond_log(const policy::Rule& rule, const policy::ClientSettings& client) {
  auto found = beyond_log(rule.match, client);
  for (const auto& variant : rule.overrides)
    if (found.empty()) found = beyond_log(variant.match, client);
  for (const auto& part : rule.key)
    for (const auto& attribute : part)
      if (found.empty()) found = beyond_log(attribute, client);
  using Kind = policy::CostSource::Kind;
  const auto& cost = rule.cost_from;
  if (found.empty() && cost.kind == Kind::Header) return "the header " + cost.name;
  if (found.empty() && cost.kind == Kind::Json) return "the body";
  if (found.empty() && cost.kind == Kind::Query && is_hidden(cost.name, client))
    return "the credential in the query";
  return found;
}

}  // namespace weir::replay
