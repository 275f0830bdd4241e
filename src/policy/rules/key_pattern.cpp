#include "weir/policy/rules/key_pattern.hpp"

#include "policy/rules/pieces.hpp"

#include "weir/base/edit_distance.hpp"

#include <algorithm>
#include <array>

namespace weir::policy {

namespace {

struct Word {
  std::string_view text;
  Attribute kind;
  bool named;
};

constexpr std::array kWords = {
    Word{"ip", Attribute::Ip, false},
    Word{"api_key", Attribute::ApiKey, false},
    Word{"user", Attribute::User, false},
    Word{"org", Attribute::Org, false},
    Word{"tier", Attribute::Tier, false},
    Word{"service", Attribute::Service, false},
    Word{"device", Attribute::Device, false},
    Word{"route", Attribute::Route, false},
    Word{"host", Attribute::Host, false},
    Word{"method", Attribute::Method, false},
    Word{"path", Attribute::Path, false},
    Word{"path", Attribute::PathSegment, true},
    Word{"header", Attribute::Header, true},
    Word{"query", Attribute::Query, true},
    Word{"cookie", Attribute::Cookie, true},
    Word{"country", Attribute::Country, false},
    Word{"claim", Attribute::Claim, true},
    Word{"cert:subject", Attribute::CertSubject, false},
    Word{"upstream", Attribute::Upstream, false},
    Word{"json", Attribute::Json, true},
    Word{"form", Attribute::Form, true},
    Word{"city", Attribute::City, false},
    Word{"region", Attribute::Region, false},
    Word{"asn", Attribute::Asn, false},
    Word{"descriptor", Attribute::Descriptor, true},
    Word{"domain", Attribute::Domain, false},
};

std::string_view nearest(std::string_view word) {
  const auto closer = [&](const Word& a, const Word& b) {
    return base::edit_distance(word, a.text) < base::edit_distance(word, b.text);
  };
  return std::min_element(kWords.begin(), kWords.end(), closer)->text;
}

const Word& word_of(Attribute kind) {
  return *std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.kind == kind; });
}

// Returns true if the text is a token (RFC 9110 §5.6.2).
bool is_token(std::string_view text) {
  constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

// Returns true if a Cookie field can contain a cookie with this name. Accepts more names than RFC 6265 §4.2.1
// allows.
bool may_name_cookie(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c <= ' ' || c == '=' || c == ';' || c == 0x7f; });
}

// Returns the text in lower case. Field names ignore case, so "X-Tenant" and "x-tenant" must name the same
// key in Redis.
std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

// Returns true for the number of a path segment: 1 to 999, without leading zeros.
bool is_segment_number(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 3 && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Returns what is wrong with the name after the colon of an attribute ("header:NAME"); empty if the name is
// valid.
std::string fault_of_name(Attribute kind, std::string_view name) {
  switch (kind) {
    case Attribute::Cookie:
      return may_name_cookie(name) ? ""
                                   : "is not a valid cookie name; write a name without blanks, '=' and ';'";
    case Attribute::Header:
      return is_token(name) ? "" : "is not a valid header name";
    case Attribute::PathSegment:
      return is_segment_number(name)
                 ? ""
                 : "has no number from 1 to 999; write \"path:1\" for the first segment, or \"path\" for all";
    case Attribute::Json:
      return is_json_pointer(name) ? ""
                                   : "has no JSON pointer (RFC 6901); write such as \"json:/email\" or "
                                     "\"json:/items/0/id\"";
    default:
      return "";
  }
}

base::Result<AttributeRef> parse_attribute(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return base::Error{"\"" + std::string(text) + "\" " + why};
  };
  if (text == "cert:subject")
    return AttributeRef{Attribute::CertSubject, {}};  // no name follows the colon in "cert:subject"
  const auto colon = text.find(':');
  const auto kind = text.substr(0, colon);
  const auto name = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (kind == "cert") return wrong("is not an attribute of a certificate; write \"cert:subject\"");
  const bool segment = kind == "path" && colon != std::string_view::npos;
  const auto word = std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) {
    return w.text == kind && (!segment || w.kind == Attribute::PathSegment);
  });
  if (word == kWords.end())
    return wrong("is not an attribute; the nearest is \"" + std::string(nearest(kind)) + "\"");
  if (!word->named && colon != std::string_view::npos)
    return wrong("takes no name; write \"" + std::string(kind) + "\"");
  if (!word->named) return AttributeRef{word->kind, {}};
  if (name.empty()) return wrong("needs a name, as \"" + std::string(kind) + ":NAME\"");
  if (const auto fault = fault_of_name(word->kind, name); !fault.empty()) return wrong(fault);
  return AttributeRef{word->kind, word->kind == Attribute::Header ? lower(name) : std::string(name)};
}

std::string describe(const KeyPart& part) {
  std::string text;
  for (const auto& attribute : part) text += (text.empty() ? "" : "|") + policy::describe(attribute);
  return text;
}

}  // namespace

base::Result<KeyPart> parse_key_part(std::string_view text) {
  KeyPart part;
  std::string_view rest = text;
  do {
    const bool more = rest.find('|') != std::string_view::npos;
    const auto attribute = parse_attribute(take_piece(rest, '|'));
    if (!attribute) return attribute.error();
    part.push_back(*attribute);
    if (more && rest.empty())
      return base::Error{"\"" + std::string(text) + "\" ends with '|'; write the fallback after it"};
  } while (!rest.empty());
  return part;
}

std::string describe(const AttributeRef& attribute) {
  return std::string(word_of(attribute.kind).text) + (attribute.name.empty() ? "" : ":" + attribute.name);
}

std::string describe(const KeyPattern& pattern) {
  std::string text;
  for (const auto& part : pattern) text += (text.empty() ? "" : ", ") + describe(part);
  return "[" + text + "]";
}

bool names_nobody(const KeyPattern& pattern) noexcept {
  return std::all_of(pattern.begin(), pattern.end(), [](const KeyPart& part) {
    return std::all_of(part.begin(), part.end(), [](const AttributeRef& attribute) {
      return attribute.kind == Attribute::Route || attribute.kind == Attribute::Upstream;
    });
  });
}

bool reads_body(const KeyPattern& pattern) noexcept {
  return std::any_of(pattern.begin(), pattern.end(), [](const KeyPart& part) {
    return std::any_of(part.begin(), part.end(),
                       [](const AttributeRef& attribute) { return is_in_body(attribute.kind); });
  });
}

bool is_json_pointer(std::string_view text) noexcept {
  constexpr std::size_t kLongest = 128;
  if (!text.starts_with('/') || text.size() > kLongest) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') return false;
    if (c == '~' && text.substr(i, 2) != "~0" && text.substr(i, 2) != "~1") return false;
  }
  return true;
}

}  // namespace weir::policy
