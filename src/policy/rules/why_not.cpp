// Explains in words why a request does not match. Match::unmet() names the condition, so the explanation
// agrees with the decision.
#include "weir/policy/match.hpp"

namespace weir::policy {

namespace {

// Returns "a" for the list {a}, and "among a, b" for the list {a, b}.
std::string choice(const std::vector<std::string>& words) {
  if (words.size() == 1) return words.front();
  std::string text = "among ";
  for (const auto& word : words) text += (&word == &words.front() ? "" : ", ") + word;
  return text;
}

// Returns a text such as "method GET is not among PUT, POST". If the request has no value, the text says only
// which values are required.
std::string other_than(const char* what, std::string_view said, const std::vector<std::string>& wanted) {
  if (said.empty()) return std::string(what) + " is unknown, but must be " + choice(wanted);
  return std::string(what) + " " + std::string(said) + " is not " + choice(wanted);
}

std::string unmet_name(const char* what, const NamedText& wanted) {
  const auto text = wanted.text.describe();
  const auto subject = std::string(what) + " " + wanted.name;
  if (text == "present") return subject + " is absent";
  return subject + (text.starts_with('~') ? " is absent or does not match " : " is absent or not ") + text;
}

std::string wrong_body(const std::vector<std::string>& words) {
  std::string text = "the body contains none of";
  for (const auto& word : words) text += " \"" + word + "\"";
  return text;
}

std::vector<std::string> texts(const std::vector<HostMatch>& patterns) {
  std::vector<std::string> all;
  all.reserve(patterns.size());
  for (const auto& pattern : patterns) all.push_back(pattern.describe());
  return all;
}

std::vector<std::string> texts(const std::vector<base::Cidr>& blocks) {
  std::vector<std::string> all;
  all.reserve(blocks.size());
  for (const auto& block : blocks) all.push_back(block.to_string());
  return all;
}

}  // namespace

std::string Match::why_not(const Request& request) const {
  switch (unmet(request)) {
    case Unmet::Nothing:
      break;
    case Unmet::Method:
      return other_than("method", request.head->method, methods);
    case Unmet::Host:
      return other_than("host", request.host, texts(hosts));
    case Unmet::Scheme:
      return *https ? "scheme http is not https" : "scheme https is not http";
    case Unmet::Listener:
      return other_than("listener", request.listener, listeners);
    case Unmet::Domain:
      return other_than("domain", request.domain, domains);
    case Unmet::Descriptor:
      if (request.descriptors.empty()) return "only a question has a descriptor";
      return unmet_name("the descriptor's", *unmet_value(request));
    case Unmet::Route:
      return other_than("route", request.route, routes);
    case Unmet::Tier:
      return other_than("tier", request.client.tier, tiers);
    case Unmet::Claim:
      return unmet_name(request.client.claims == nullptr ? "no token is valid, so the claim" : "the claim",
                        *unmet_claim(request.client));
    case Unmet::Country:
      return other_than("country", request.client.country, countries);
    case Unmet::City:
      return other_than("city", request.client.city, cities);
    case Unmet::Region:
      return other_than("region", request.client.region, regions);
    case Unmet::Asn:
      return other_than("asn", request.client.asn, asns);
    case Unmet::Path:
      return "path " + std::string(request.path) + " does not match " + path->describe();
    case Unmet::Ip:
      return other_than("address", request.client.address.to_string(), texts(ip));
    case Unmet::Hours:
      return "applies only in " + hours->describe() + ", but it is " + hours->clock_at(request.now) +
             " there";
    case Unmet::Header:
      return unmet_name("header", *unmet_header(request));
    case Unmet::Query:
      return unmet_name("query parameter", *unmet_parameter(request));
    case Unmet::Body:
      return wrong_body(body_words);
    case Unmet::Json:
      return unmet_name("the JSON member", *unmet_json(request));
    case Unmet::Excluded:
      return "excluded by not (" + negated->describe() + ")";
  }
  return {};
}

}  // namespace weir::policy
