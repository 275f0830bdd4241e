#include "weir/policy/inspection.hpp"

#include "policy/rules/descriptors.hpp"

#include "weir/policy/evaluation.hpp"
#include "weir/policy/key_values.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

// Returns true if weir needs the body to choose the override that applies.
bool overrides_ask(const Rule& rule, const Request& request) {
  for (const auto& variant : rule.overrides) {
    const auto known = variant.match.known(request);
    if (known != Match::Known::No) return known == Match::Known::Open;
  }
  return false;
}

// Returns the first attribute of the key's part that is read from the body, or for which the request has a
// value. An attribute in the body counts as present before the body is read, because the body may have it.
// Returns null if the part has no such attribute.
const AttributeRef* deciding(const KeyPart& part, const Request& request) {
  const auto found = std::find_if(part.begin(), part.end(), [&](const AttributeRef& attribute) {
    return is_in_body(attribute.kind) || has_value(attribute, request);
  });
  return found == part.end() ? nullptr : &*found;
}

// Returns true if weir needs the body to find the part's value. Also returns true if a query parameter gives
// the value, but the part also names an attribute in the body. The server may then use the value in the body.
// If weir used the parameter, a client could get a new limit by each parameter that it invents.
bool part_asks(const KeyPart& part, const Request& request) {
  const auto* attribute = deciding(part, request);
  if (attribute == nullptr || is_in_body(attribute->kind)) return attribute != nullptr;
  return attribute->kind == Attribute::Query && has_body(request) &&
         std::any_of(part.begin(), part.end(),
                     [](const AttributeRef& other) { return is_in_body(other.kind); });
}

bool key_asks(const Rule& rule, const Request& request) {
  return std::any_of(rule.key.begin(), rule.key.end(),
                     [&](const KeyPart& part) { return part_asks(part, request); });
}

bool lacks_part(const Rule& rule, const Request& request) {
  return std::any_of(rule.key.begin(), rule.key.end(),
                     [&](const KeyPart& part) { return deciding(part, request) == nullptr; });
}

void add_names(const Match& match, BodyNames& names) {
  for (const auto& condition : match.json) names.add_pointer(condition.name);
  if (match.negated) add_names(*match.negated, names);
}

}  // namespace

BodyNames body_names(std::span<const Rule> rules) {
  BodyNames names;
  for (const Rule& rule : rules) {
    add_names(rule.match, names);
    for (const auto& variant : rule.overrides) add_names(variant.match, names);
    for (const auto& part : rule.key)
      for (const auto& attribute : part) {
        if (attribute.kind == Attribute::Json) names.add_pointer(attribute.name);
        if (attribute.kind == Attribute::Form) names.add_field(attribute.name);
      }
  }
  return names;
}

bool has_body(const Request& request) noexcept {
  return request.body.state == RequestBody::State::Whole ? !request.body.text.empty()
                                                         : request.head->framing != http::Framing::None;
}

bool is_coded(const http::Fields& fields) noexcept {
  return std::any_of(fields.begin(), fields.end(), [](const http::Field& field) {
    return http::equal_ignoring_case(field.name, "Content-Encoding") && !field.value.empty() &&
           !http::equal_ignoring_case(field.value, "identity");
  });
}

namespace {

bool asks(const Rule& rule, const Request& request) {
  const auto known = rule.match.known(request);
  if (known == Match::Known::No) return false;
  if (rule.on_missing == OnMissing::Skip && lacks_part(rule, request)) return false;
  return known == Match::Known::Open || reads_body(rule.cost_from) || overrides_ask(rule, request) ||
         key_asks(rule, request);
}

}  // namespace

bool asks_for_body(const Rule& rule, const Request& request) {
  return rule.max_body != 0 &&
         any_descriptor(rule, request, [&](const Request& seen) { return asks(rule, seen); });
}

std::uint64_t wanted_body(RuleList rules, const Request& request) {
  std::uint64_t most = 0;
  for (const Rule& rule : rules)
    if (rule.max_body > most && asks_for_body(rule, request)) most = rule.max_body;
  return most;
}

std::uint64_t body_wanted_to_enforce(RuleList rules, const Request& request) {
  std::uint64_t most = 0;
  for (const Rule& rule : rules)
    if (rule.mode == Mode::Enforce && rule.max_body > most && asks_for_body(rule, request))
      most = rule.max_body;
  return most;
}

RequestBody::State hidden_body(const Rule& rule, const Request& request) {
  using State = RequestBody::State;
  const auto& body = request.body;
  const auto state =
      body.state == State::Whole && body.text.size() > rule.max_body ? State::TooLong : body.state;
  return state != State::Whole && asks_for_body(rule, request) ? state : State::Whole;
}

}  // namespace weir::policy
