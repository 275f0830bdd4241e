// Conditions on a request, used by rules, overrides and routes. A Match holds if all its conditions hold.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/policy/body_values.hpp"
#include "weir/policy/hours.hpp"
#include "weir/policy/request.hpp"
#include "weir/policy/routing/patterns.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// An ambiguous value: a rule reads the value, but the request has several different values. weir does not
// know which of them the upstream uses.
struct Ambiguity {
  const char* place;      // "header", "query parameter", "cookie", "path", "JSON member", "form field"
  std::string_view name;  // name of the header, parameter, … in the rule; empty for a path
  // Why weir cannot read a value that may be in the body; None for values in the head.
  BodyFault fault = BodyFault::None;
  JsonFault json = JsonFault::None;  // for NotJson: why the body is not JSON
  // For TwoValues: the place and name of the second value.
  const char* other_place = "";
  std::string_view other_name{};
};

struct Match {
  std::optional<PathMatch> path;
  std::vector<std::string> methods;  // the method must be in this list; case-sensitive (RFC 9110 §9.1)
  std::vector<HostMatch> hosts;      // one of these patterns must match the host
  std::optional<bool> https;         // the scheme: true is https, false is http
  // All conditions in `headers` and `query` must hold. A condition holds if any line of the header, or any
  // parameter with the name, matches. Query names and values are compared after percent-decoding. A '+' in
  // the query matches both a blank and a plus sign.
  std::vector<NamedText> headers;  // upper and lower case of names are equal
  std::vector<NamedText> query;    // names are case-sensitive
  std::vector<std::string> tiers;  // the tier must be in this list
  // The verified token must have all these claims. If a claim is a list, one element must match. In the
  // claim `scope`, one word must match.
  std::vector<NamedText> claims;
  std::vector<base::Cidr> ip;          // a block of this list must contain the client's address
  std::vector<std::string> countries;  // the client's country must be in this list: "CH"
  std::vector<std::string> cities;     // the city must be in this list: "Geneva"
  std::vector<std::string> regions;    // the region must be in this list: "CH-GE"
  std::vector<std::string> asns;       // the autonomous system must be in this list: "AS3303"
  std::vector<std::string> listeners;  // the listener must be in this list
  std::vector<std::string> domains;    // the domain of the question must be in this list
  // The descriptor against which the rule is being tested (Request::descriptor) must have all these values;
  // keys are case-sensitive. If Request::descriptor is null, some descriptor of the question must have all of
  // them.
  std::vector<NamedText> descriptor;
  // the matched route must be in this list; set by set_routes(); unused in a route's own conditions
  std::vector<std::string> routes;
  std::optional<Hours> hours;  // the hours that must include Request::now
  // `body_contains`: the body must contain a word of this list. The words are results of body_word().
  std::vector<std::string> body_words;
  // All conditions in `json` must hold. A condition holds if the JSON body has a value under its pointer
  // (`name`) and the value matches its text.
  std::vector<NamedText> json;
  std::shared_ptr<const Match> negated;  // `not`: at least one of these conditions must not hold
  // Element i: true if the name of the configured route i is in `routes`. So a test of this condition takes
  // the same time for any number of names.
  std::vector<bool> has_route{};
  // Bytes of the body to read for `body_words` and `json`, including those in `negated`; 0: no such
  // condition.
  std::uint64_t max_body = 0;

  // Sets the condition on the route: the matched route must be one of `names`. `all`: the names of all
  // configured routes, in order.
  void set_routes(std::vector<std::string> names, const std::vector<std::string>& all);

  // The first condition that does not hold. The conditions are checked in this order.
  enum class Unmet : std::uint8_t {
    Nothing,  // all conditions hold
    Method,
    Host,
    Scheme,
    Listener,
    Domain,
    Descriptor,
    Route,
    Tier,
    Claim,
    Country,
    City,
    Region,
    Asn,
    Path,
    Ip,
    Hours,
    Header,
    Query,
    Body,
    Json,
    Excluded,  // the conditions in `negated` hold
  };
  // Returns the first unmet condition. REQUIRES: if a condition reads the body, the request has its whole
  // body. holds() and why_not() have the same requirement.
  [[nodiscard]] Unmet unmet(const Request& request) const;
  [[nodiscard]] bool holds(const Request& request) const { return unmet(request) == Unmet::Nothing; }
  // Returns true if the conditions on the client and on the time hold. Ignores the conditions on what the
  // client requests (path, method and so on), also in `negated`.
  [[nodiscard]] bool holds_for_client(const Request& request) const;
  // Returns true if all conditions are on the client and the time, and none on what the client requests.
  [[nodiscard]] bool is_about_clients() const noexcept;
  // Returns the unmet condition in words: "path /login does not match /api/*". Empty if all conditions hold.
  // The text contains no header or query values of the request.
  [[nodiscard]] std::string why_not(const Request& request) const;

  // Whether the conditions hold, judged by the request's head alone.
  enum class Known : std::uint8_t {
    No,    // the conditions do not hold
    Yes,   // the conditions hold
    Open,  // the result depends on the body, or on a token that is not verified yet
  };
  [[nodiscard]] Known known(const Request& request) const;
  // Returns true if a condition of this Match or of `negated` depends on a token that is not verified yet.
  [[nodiscard]] bool awaits_token(const Request& request) const noexcept;
  // Returns the first ambiguous condition: a condition that holds for one interpretation or value and not
  // for another. A client could evade such a condition, so weir rejects the request. A body that is not JSON
  // makes all conditions on JSON ambiguous. Returns nullopt if a condition on the method, the host, the
  // client or the like does not hold, because the Match then does not hold in any case.
  [[nodiscard]] std::optional<Ambiguity> ambiguity(const Request& request) const {
    if (is_path_ambiguous(request)) return Ambiguity{.place = "path", .name = {}};
    return ambiguity_in_values(request);
  }
  // Returns true if the conditions hold for one interpretation of the path and not for another, or if
  // they depend on the path and there are too many interpretations. Exception: if most servers read the
  // normal form (PathInterpretations::equal is false) and the conditions hold for this form, returns false.
  [[nodiscard]] bool is_path_ambiguous(const Request& request) const {
    return request.interpretations != nullptr && divides_interpretations(request);
  }
  // Returns "path /api/*, methods GET POST"; "everything" if there are no conditions.
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] bool is_route_listed(std::size_t route) const noexcept {
    return route < has_route.size() && has_route[route];
  }
  [[nodiscard]] bool goes_by_path() const noexcept;
  [[nodiscard]] bool divides_interpretations(const Request& request) const;
  // Returns true if every condition on the path has the same result for both paths.
  [[nodiscard]] bool treats_alike(std::string_view one, std::string_view other) const;
  // Returns the first ambiguous condition on a header, the query or the body. Inline, because most rules have
  // no such conditions.
  [[nodiscard]] std::optional<Ambiguity> ambiguity_in_values(const Request& request) const {
    if (headers.empty() && query.empty() && json.empty() && !negated) return std::nullopt;
    return ambiguity_by_name(request);
  }
  [[nodiscard]] std::optional<Ambiguity> ambiguity_by_name(const Request& request) const;
  enum class OfToken : std::uint8_t { Unmet, Ignored };  // how to treat conditions on an unverified token
  [[nodiscard]] Unmet unmet_by_client(const Request& request, OfToken of_token = OfToken::Unmet) const;
  [[nodiscard]] Unmet unmet_by_head(const Request& request, OfToken of_token = OfToken::Unmet) const;
  // Each returns the first condition in `claims` (`headers`, `query`, `json`, `descriptor`) that no value
  // meets; null: all conditions are met.
  [[nodiscard]] const NamedText* unmet_claim(const ClientIdentity& client) const;
  [[nodiscard]] const NamedText* unmet_header(const Request& request) const;
  [[nodiscard]] const NamedText* unmet_parameter(const Request& request) const;
  [[nodiscard]] const NamedText* unmet_json(const Request& request) const;
  [[nodiscard]] const NamedText* unmet_value(const Request& request) const;
  [[nodiscard]] std::optional<Ambiguity> fault_in_json(const Request& request) const;
};

// Returns true if `wide` matches every host that `narrow` matches.
[[nodiscard]] bool hosts_cover(const Match& wide, const Match& narrow);

}  // namespace weir::policy
