// Says why weir rejects a request before it checks any limit.
#include "weir/policy/evaluation.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

bool is_credential(const AttributeRef& attribute) noexcept {
  switch (attribute.kind) {
    case Attribute::ApiKey:
    case Attribute::User:
    case Attribute::Org:
    case Attribute::Service:
    case Attribute::Claim:
    case Attribute::CertSubject:
      return true;
    default:
      return false;
  }
}

// Returns a name from the configuration in a form that is safe in a JSON sentence.
std::string printable(std::string_view name) {
  std::string text(name);
  const auto odd = [](unsigned char c) { return c < 0x20 || c >= 0x7f || c == '"' || c == '\\'; };
  std::replace_if(text.begin(), text.end(), odd, '?');
  return text;
}

}  // namespace

unsigned status_of(const Rejection& rejection) noexcept {
  if (rejection.too_many_rules || rejection.token == TokenFault::Unavailable) return 503;
  if (rejection.token) return 401;
  if (rejection.body == RequestBody::State::Coded) return 415;
  if (rejection.body != RequestBody::State::Whole) return 413;
  const auto fault = rejection.ambiguity ? rejection.ambiguity->fault : BodyFault::None;
  if (fault == BodyFault::Charset || fault == BodyFault::Multipart) return 415;
  return rejection.part != nullptr &&
                 std::any_of(rejection.part->begin(), rejection.part->end(), is_credential)
             ? 401
             : 400;
}

bool is_about_path(const Rejection& rejection) noexcept {
  return rejection.ambiguity && rejection.ambiguity->name.empty();
}

std::string describe(const http::Excess& excess) {
  using Kind = http::Excess::Kind;
  if (excess.kind == Kind::Parameters) return "the query of the request has too many parameters";
  if (excess.kind == Kind::Cookies) return "the request has too many cookies";
  if (excess.kind == Kind::Fields) return "the form in the request body has too many fields";
  return "the request repeats the " + std::string(excess.place) + " " + printable(excess.name) + " too often";
}

namespace {

// Returns the end of the sentence that begins "rule R cannot read V: ". REQUIRES: the fault is one of the
// body as a whole.
std::string describe_body_fault(const Ambiguity& ambiguity) {
  switch (ambiguity.fault) {
    case BodyFault::ContentType:
      return "the Content-Type of the request is not one media type, or is one that only some servers take "
             "for that of a form; send one, such as application/json";
    case BodyFault::Charset:
      return "the Content-Type of the request names another charset than UTF-8; send UTF-8";
    case BodyFault::Multipart:
      return "the request body is a multipart form; send it as application/x-www-form-urlencoded";
    case BodyFault::NeitherKind:
      return "the request body is not JSON, and its Content-Type is not that of a form; send JSON in UTF-8";
    default:
      return "the request body " + std::string(describe(ambiguity.json));
  }
}

// Returns the sentence about a value that may be in the body. REQUIRES: the rejection is about such a value.
std::string describe_body(const Rejection& rejection) {
  const auto& ambiguity = *rejection.ambiguity;
  const auto value = std::string(ambiguity.place) + " " + printable(ambiguity.name);
  switch (ambiguity.fault) {
    case BodyFault::Repeated:
      return "the request body has the " + value + " more than once; send it once";
    case BodyFault::Respelled:
      return "the request body has a text that only some servers take for the " + value +
             "; send the name as it is, ';' as %3B, and no escape such as %u0041";
    case BodyFault::Structured:
      return "the " + value + " in the request body is an object or an array; send a text or a number";
    case BodyFault::LongNumber:
      return "the " + value + " in the request body is a number of more than " +
             std::to_string(kLongestBodyValue) + " octets; send a shorter one";
    case BodyFault::TwoValues:
      return "the request has both the " + value + " and the " + ambiguity.other_place + " " +
             printable(ambiguity.other_name) + "; send one of them";
    case BodyFault::InQuery:
      return "the query of the request has the " + value +
             ", or a name that some servers take for it; send the field in the request body only";
    default:
      return "rule " + rejection.rule->name + " cannot read the " + value + ": " +
             describe_body_fault(ambiguity);
  }
}

// Returns the sentence about a missing part of the key. REQUIRES: the rejection is about such a part.
std::string describe_missing(const Rejection& rejection) {
  std::string values;
  for (const auto& [kind, name] : *rejection.part)
    if (is_in_body(kind))
      values += (values.empty() ? "" : " or the ") +
                std::string(kind == Attribute::Json ? "JSON member " : "form field ") + printable(name);
  return values.empty() ? "the request has nothing that identifies its client"
                        : "rule " + rejection.rule->name + " needs the " + values + " in the request body";
}

}  // namespace

std::string describe(const Rejection& rejection) {
  if (rejection.too_many_rules)
    return "more than " + std::to_string(limit::kMaxCharges) + " limits apply to the request";
  if (rejection.excess) return describe(rejection.excess);
  if (is_about_path(rejection))
    return "the path is ambiguous: servers may interpret it in several ways that rule " +
           rejection.rule->name + " treats differently";
  if (rejection.ambiguity && rejection.ambiguity->fault != BodyFault::None) return describe_body(rejection);
  if (rejection.ambiguity)
    return "the request has several different values for the " + std::string(rejection.ambiguity->place) +
           " " + printable(rejection.ambiguity->name);
  if (rejection.token == TokenFault::Unavailable)
    return "the bearer token cannot be verified: " + std::string(sentence_of(*rejection.token)) +
           "; please retry";
  if (rejection.token && *rejection.token != TokenFault::Missing)
    return "the bearer token is invalid: " + std::string(sentence_of(*rejection.token));
  if (rejection.part != nullptr) return describe_missing(rejection);
  if (rejection.body == RequestBody::State::Coded)
    return "rule " + rejection.rule->name + " cannot read a request body with a Content-Encoding";
  if (rejection.body == RequestBody::State::OverMemory)
    return "the request body is longer than max_body_memory, so rule " + rejection.rule->name +
           " cannot read it";
  if (rejection.body != RequestBody::State::Whole)
    return "the request body is longer than the " + std::to_string(rejection.rule->max_body) +
           " bytes that rule " + rejection.rule->name + " reads";
  if (rejection.json != JsonFault::None)
    return "the cost in the " + printable(describe(rejection.rule->cost_from)) +
           " cannot be read: the request body " + std::string(describe(rejection.json));
  if (rejection.rule->cost_from.kind == CostSource::Kind::None)
    return "the costs of the question for one key of rule " + rejection.rule->name + " add up to more than " +
           std::to_string(limit::kMaxCost) + "; ask several questions";
  return "the cost in the " + printable(describe(rejection.rule->cost_from)) + " is not a " +
         (rejection.rule->cost_from.scale == 0 ? "whole number" : "number") + " that amounts to 1 to " +
         std::to_string(limit::kMaxCost);
}

}  // namespace weir::policy
