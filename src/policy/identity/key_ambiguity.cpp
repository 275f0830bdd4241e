// Finds values of a key that a request states in several ways, or that servers may read in several ways.
#include "policy/body/form_fields.hpp"
#include "policy/identity/consistent_value.hpp"

#include "weir/policy/body_values.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/inspection.hpp"
#include "weir/policy/key_values.hpp"

#include <algorithm>
#include <charconv>

namespace weir::policy {

namespace {

// Returns true if, in another interpretation of the path, the segment with this number differs from the one
// that weir reads. Returns false if most servers read what weir reads (PathInterpretations::equal is false).
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

// Returns an ambiguity if the request has differing values for the attribute, or if servers may read another
// value than weir.
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

// Returns true for attributes of which a request may have several different values, or a value that servers
// read in different ways.
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

// Returns an ambiguity if the query has the form field, because some servers merge the fields of query and
// body (Servlet's getParameter). Exception: if the request has no body and `part` also has the query
// parameter of this name, returns nullopt, because this parameter decides the key.
std::optional<Ambiguity> field_in_query(const AttributeRef& field, const KeyPart& part,
                                        const Request& request) {
  const auto is_named = [&](const AttributeRef& other) {
    return other.kind == Attribute::Query && other.name == field.name;
  };
  if (!has_field(request.head->query, field.name)) return std::nullopt;
  if (!has_body(request) && std::any_of(part.begin(), part.end(), is_named)) return std::nullopt;
  return Ambiguity{.place = place_in_body(field), .name = field.name, .fault = BodyFault::InQuery};
}

// Returns the kind of place where the attribute is. REQUIRES: the attribute is in the body or the query.
const char* place_of(const AttributeRef& attribute) noexcept {
  return attribute.kind == Attribute::Query ? "query parameter" : place_in_body(attribute);
}

// Returns the ambiguity of an attribute in the body. `by_query`: true if the key is taken from a query
// parameter that stands before the attribute in `part`. Looks for a form field in the query, too. Exception:
// not while the body is Unread and `by_query` is false.
std::optional<Ambiguity> ambiguity_in_body(const AttributeRef& attribute, const KeyPart& part,
                                           const Request& request, bool by_query) {
  const bool unread = request.body.state == RequestBody::State::Unread;
  if (attribute.kind == Attribute::Form && (by_query || !unread))
    if (const auto found = field_in_query(attribute, part, request)) return found;
  return ambiguity_of(attribute, request);
}

// Returns the first ambiguity of the part's attributes. The first attribute for which the request has a value
// decides the key. The function ignores later attributes, except those that a server may prefer to the
// deciding attribute. A value of such an attribute is an ambiguity, too:
// * a value in the body, if the deciding attribute is in the query;
// * a value in the body or in the query, if the deciding attribute is in the body.
std::optional<Ambiguity> ambiguous_in(const KeyPart& part, const Request& request) {
  const AttributeRef* deciding = nullptr;  // the attribute in the body or the query that decides the key
  for (const auto& attribute : part) {
    const bool in_body = is_in_body(attribute.kind);
    const bool by_query = deciding != nullptr && deciding->kind == Attribute::Query;
    if (deciding != nullptr && !in_body && (attribute.kind != Attribute::Query || by_query)) continue;
    const auto found =
        in_body ? ambiguity_in_body(attribute, part, request, by_query) : ambiguity_of(attribute, request);
    if (found) return found;
    if (part.size() == 1 || !has_value(attribute, request)) continue;
    if (!in_body && attribute.kind != Attribute::Query) break;
    if (deciding != nullptr)
      return Ambiguity{.place = place_of(*deciding),
                       .name = deciding->name,
                       .fault = BodyFault::TwoValues,
                       .other_place = place_of(attribute),
                       .other_name = attribute.name};
    deciding = &attribute;
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
