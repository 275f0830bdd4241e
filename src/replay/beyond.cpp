#include "replay/beyond.hpp"

namespace weir::replay {

namespace {

using policy::Attribute;
using ParameterNames = std::vector<std::string>;

std::string beyond_log(const policy::AttributeRef& attribute) {
  switch (attribute.kind) {
    case Attribute::Header:
      return "the header " + attribute.name;
    case Attribute::Cookie:
      return "the cookie " + attribute.name;
    case Attribute::Claim:
      return "the claim " + attribute.name;
    case Attribute::CertSubject:
      return "the client's certificate";
    case Attribute::Json:
    case Attribute::Form:
      return "the body";
    case Attribute::City:
      return "the city";
    case Attribute::Region:
      return "the region";
    case Attribute::Asn:
      return "the autonomous system";
    default:
      return "";
  }
}

void add_parameters(const policy::Match& match, ParameterNames& names) {
  for (const auto& parameter : match.query) names.push_back(parameter.name);
  if (match.negated) add_parameters(*match.negated, names);
}

std::string asked_of_questions(const policy::Match& match) {
  if (!match.domains.empty()) return "the domain";
  if (!match.descriptor.empty()) return "the descriptor";
  return match.negated ? asked_of_questions(*match.negated) : "";
}

void add_descriptors(const policy::Match& match, std::vector<std::string>& names) {
  for (const auto& condition : match.descriptor)
    if (!condition.text.is_present()) names.push_back(condition.name);
  if (match.negated) add_descriptors(*match.negated, names);
}

}  // namespace

std::string beyond_log(const policy::Match& match) {
  if (!match.headers.empty()) return "the header " + match.headers.front().name;
  if (!match.claims.empty()) return "the claim " + match.claims.front().name;
  if (!match.body_words.empty() || !match.json.empty()) return "the body";
  if (match.https) return "the scheme";
  if (!match.listeners.empty()) return "the listener";
  if (!match.cities.empty()) return "the city";
  if (!match.regions.empty()) return "the region";
  if (!match.asns.empty()) return "the autonomous system";
  return match.negated ? beyond_log(*match.negated) : "";
}

std::string beyond_log(const policy::Rule& rule) {
  auto found = beyond_log(rule.match);
  for (const auto& variant : rule.overrides)
    if (found.empty()) found = beyond_log(variant.match);
  for (const auto& part : rule.key)
    for (const auto& attribute : part)
      if (found.empty()) found = beyond_log(attribute);
  using Kind = policy::CostSource::Kind;
  if (found.empty() && rule.cost_from.kind == Kind::Header) return "the header " + rule.cost_from.name;
  if (found.empty() && policy::reads_body(rule.cost_from)) return "the body";
  if (found.empty() && rule.cost_from.kind == Kind::Length) return "the Content-Length";
  return found;
}

std::string asked_of_questions(const policy::Rule& rule) {
  auto found = asked_of_questions(rule.match);
  for (const auto& variant : rule.overrides)
    if (found.empty()) found = asked_of_questions(variant.match);
  for (const auto& part : rule.key)
    for (const auto& attribute : part) {
      if (found.empty() && attribute.kind == Attribute::Domain) found = "the domain";
      if (found.empty() && attribute.kind == Attribute::Descriptor) found = "the descriptor";
    }
  return found;
}

std::vector<std::string> compared_descriptors(const policy::Rule& rule) {
  std::vector<std::string> names;
  add_descriptors(rule.match, names);
  for (const auto& variant : rule.overrides) add_descriptors(variant.match, names);
  return names;
}

std::vector<std::string> asked_parameters(const policy::Match& match) {
  ParameterNames names;
  add_parameters(match, names);
  return names;
}

std::vector<std::string> asked_parameters(const policy::Rule& rule) {
  auto names = asked_parameters(rule.match);
  for (const auto& variant : rule.overrides) add_parameters(variant.match, names);
  for (const auto& part : rule.key)
    for (const auto& attribute : part)
      if (attribute.kind == Attribute::Query) names.push_back(attribute.name);
  if (rule.cost_from.kind == policy::CostSource::Kind::Query) names.push_back(rule.cost_from.name);
  return names;
}

}  // namespace weir::replay
