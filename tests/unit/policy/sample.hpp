// Hand-made requests, rules and limiters for tests.
#pragma once

#include "weir/policy/evaluation.hpp"
#include "weir/policy/rules/applied_limiter.hpp"

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace weir::policy {

inline constexpr base::SipKey kKey{1, 2};
inline constexpr NamingKeys kKeys{.table = kKey, .shared = {3, 4}};
inline constexpr base::TimePoint kNow{std::chrono::seconds(1'700'000'000)};

inline http::FieldId id_of(std::string_view name) {
  if (name == "X-Forwarded-For") return http::FieldId::XForwardedFor;
  if (name == "Cookie") return http::FieldId::Cookie;
  if (name == "Authorization") return http::FieldId::Authorization;
  return http::FieldId::Other;
}

using Lines = std::initializer_list<std::pair<std::string_view, std::string_view>>;

inline http::RequestHead head_with(Lines lines, std::string_view query = {}) {
  http::RequestHead head;
  head.method = "GET";
  head.path = "/";
  head.query = query;
  for (const auto& [name, value] : lines) head.fields.push_back({name, value, id_of(name)});
  return head;
}

inline base::IpAddress ip(std::string_view text) {
  return base::IpAddress::parse(text).value();
}
inline base::Cidr cidr(std::string_view text) {
  return base::Cidr::parse(text).value();
}

// Calls policy::identify() with one object for credentials, which the next call overwrites. REQUIRES: the
// result of an earlier call is no longer used.
inline ClientIdentity identify(const ClientSettings& settings, const base::IpAddress& peer,
                               const http::RequestHead& head) {
  static Credentials credentials;
  return identify(settings, peer, head, credentials);
}

inline limit::Limiter bucket(std::uint64_t per_second, std::uint64_t burst) {
  return limit::TokenBucket::make({per_second, base::Duration(1'000'000)}, burst).value();
}

inline Rule rule_of(std::string name, std::initializer_list<std::string_view> parts) {
  Rule rule{.name = std::move(name), .limiter = bucket(10, 10)};
  for (const auto part : parts) rule.key.push_back(parse_key_part(part).value());
  return rule;
}

// Returns a request for "/" at example.com from this address. REQUIRES: `head` outlives the request.
inline Request request_of(const http::RequestHead& head, std::string_view address = "203.0.113.7") {
  Request request{.head = &head, .path = "/", .host = "example.com", .route = "api", .client = {}};
  request.client.peer = request.client.address = request.client.network = ip(address);
  return request;
}

// Returns the name of the client's key for the rule's variant with this number.
inline std::optional<limit::Key> name_key(const Rule& rule, unsigned variant, const Request& request,
                                          base::SipKey key) {
  const AppliedLimiter applied{rule.limiter.get(), rule.limiter.get(), static_cast<std::uint16_t>(variant)};
  return name_key(rule, applied, request, key);
}

}  // namespace weir::policy
