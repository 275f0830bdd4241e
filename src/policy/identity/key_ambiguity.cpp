// Finds values of a key that a request states in several ways, or that servers may read in several ways.
#include "policy/identity/consistent_value.hpp"

#include "weir/policy/body_values.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/key_values.hpp"

#include <algorithm>
#include <charconv>

namespace weir::policy {

namespace {

// Returns true if servers may read another segment of this number in the path.
bool is_segment_ambiguous(std::string_view number, const Request& request) {
  if (request.interpretations == nullptr || !request.interpretations->equal) return false;
  const auto& [others, equal, too_many] = *request.interpretations;
  const auto usual = path_segment(request.path, number);
  return too_many || std::any_of(others.begin(), others.end(), [&](const std::string& other) {
           return path_segment(other, number) != usual;
         });
}

// Returns the kind of place in the body where the attribute is. REQUIRES: is_in_body(attribute.kind).
const char* place_in_body(const AttributeRef& attribute) noexcept {
  return attribute.kind == Attribute::Json ? "JSON member" : "form field";
}

// Returns why weir cannot read the attribute in the body. REQUIRES: is_in_body(attribute.kind).
std::optional<Ambiguity> fault_in_body(const AttributeRef& attribute, const Request& request) {
  const auto* body = request.body.values;
  if (body == nullptr) return std::nullopt;
  const auto fault = attribute.kind == Attribute::Json ? body->fault_of_json(attribute.name)
                                                       : body->fault_of_field(attribute.name);
  if (fault == BodyFault::None) return std::nullopt;
  if (fault == BodyFault::TooManyFields)
    request.head->note_excess({.kind = http::Excess::Kind::Fields, .place = {}, .name = {}});
  return Ambiguity{place_in_body(attribute), attribute.name, fault, body->json_fault()};
}

// Returns an ambiguity if the request has differing values for the attribute.
std::optional<Ambiguity> ambiguity_of(const AttributeRef& attribute, const Request& request) {
  std::string decoded;
  const auto& head = *request.head;
  const auto& name = attribute.name;
  const auto about = [&](bool differs, const char* place) {
    return differs ? std::optional(Ambiguity{place, name}) : std::nullopt;
  };
  switch (attribute.kind) {
    case Attribute::Header:
      return about(!value_in_header(head, name), "header");
    case Attribute::Query:
      return about(!value_in_query(head, name), "query parameter");
    case Attribute::Cookie:
      return about(!value_in_cookies(head, name, decoded), "cookie");
    case Attribute::Path:
      return about(request.interpretations != nullptr && request.interpretations->equal, "path");
    case Attribute::PathSegment:
      return is_segment_ambiguous(name, request) ? std::optional(Ambiguity{"path", {}}) : std::nullopt;
    case Attribute::Json:
    case Attribute::Form:
      return fault_in_body(attribute, request);
    default:
      return std::nullopt;
  }
}

// Returns true for attributes that may have several different values, or values that servers read in
// different ways.
bool may_be_ambiguous(const AttributeRef& attribute) noexcept {
  switch (attribute.kind) {
    case Attribute::Header:
    case Attribute::Query:
    case Attribute::Cookie:
    case Attribute::Path:
    case Attribute::PathSegment:
    case Attribute::Json:
    case Attribute::Form:
      return true;
    default:
      return false;
  }
}

// Returns the ambiguity of the first attribute of the part for which the request has differing values.
// Ignores attributes after the first one that the request has. But if that one is in the body, the others in
// the body must have no value, because the server may use one of them.
std::optional<Ambiguity> ambiguous_in(const KeyPart& part, const Request& request) {
  const AttributeRef* in_body = nullptr;  // the attribute in the body that decides the key
  for (const auto& attribute : part) {
    if (in_body != nullptr && !is_in_body(attribute.kind)) continue;
    if (const auto found = ambiguity_of(attribute, request)) return found;
    if (part.size() == 1 || !has_value(attribute, request)) continue;
    if (!is_in_body(attribute.kind)) break;
    if (in_body != nullptr)
      return Ambiguity{.place = place_in_body(*in_body),
                       .name = in_body->name,
                       .fault = BodyFault::TwoValues,
                       .other_place = place_in_body(attribute),
                       .other_name = attribute.name};
    in_body = &attribute;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Ambiguity> ambiguity_in_key(const Rule& rule, const Request& request) {
  for (const auto& part : rule.key) {
    if (std::none_of(part.begin(), part.end(), may_be_ambiguous)) continue;
    if (const auto found = ambiguous_in(part, request)) return found;
  }
  return std::nullopt;
}

std::string_view path_segment(std::string_view path, std::string_view number) noexcept {
  unsigned left = 0;
  std::from_chars(number.data(), number.data() + number.size(), left);
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    if (--left == 0) return path.substr(0, end);
    path.remove_prefix(end);
  }
  return {};
}

}  // namespace weir::policy
