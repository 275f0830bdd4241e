// A request as rules, overrides and routes see it.
#pragma once

#include "weir/base/time.hpp"
#include "weir/http/head.hpp"
#include "weir/http/path_interpretations.hpp"
#include "weir/policy/body.hpp"
#include "weir/policy/descriptor.hpp"
#include "weir/policy/identity.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::limit {
class Factors;
}

namespace weir::policy {

struct AddressDigest;

inline constexpr std::size_t kNoRoute = ~std::size_t{0};  // stands for the index of a route: no route matched

// A request as rules see it. Its views live as long as the head's buffer.
struct Request {
  const http::RequestHead* head = nullptr;
  std::string_view path;  // result of http::normalise_path()
  // Other interpretations of the path; null: there are none.
  const http::PathInterpretations* interpretations = nullptr;
  std::string_view host;               // result of http::normalise_host()
  std::string_view route;              // name of the matched route; empty while routes are being matched
  std::size_t route_index = kNoRoute;  // index of the matched route among the configured routes
  std::string_view upstream{};         // name of the route's upstream; empty if weir answers itself
  ClientIdentity client;
  base::TimePoint now{};  // when the request arrived
  double load = 1;        // the load of the system at `now`, from 0 (idle) to 1 (full), for elastic limits
  // the share of its limit that each rule with `adapt` grants now; null: every rule grants its whole limit
  const limit::Factors* factors = nullptr;
  // where the connection remembers the digest of the client's address; null: weir remembers none
  AddressDigest* address_digest = nullptr;
  RequestBody body{};  // the part of the body that the rules need (policy/inspection.hpp)
  // True: other interpretations of the path lead to other routes, and `route` refuses ambiguous paths.
  bool routes_differ = false;
  // True: `route` rewrites the path, and the new path may lead outside the prefix that the route names, at
  // least as some servers read it (PathRewrite::leaves_target).
  bool leaves_target = false;
  bool secure = false;          // true: the client uses TLS to weir
  std::string_view listener{};  // name of the listener; empty: the listener has no name

  // The following members belong to questions, which ask weir for a decision. Requests to servers have none.
  std::string_view domain{};                  // the domain that the question names; empty: none
  std::span<const Descriptor> descriptors{};  // the named values of the question, at most kMaxCharges
  // the element of `descriptors` against which a rule is being tested; null: the rule is tested against the
  // whole question
  const Descriptor* descriptor = nullptr;
  // The cost that the question states. This cost replaces Rule::cost of rules without `cost_from`, but not of
  // concurrency limits. If a descriptor has its own cost, that cost counts instead. 0: the question only
  // checks all its limits, and nothing is charged.
  std::optional<limit::Cost> stated_cost{};
};

// A request as the rule of one charge sees it: the request itself, or a copy that names the charge's
// descriptor. The request must outlive this object.
class RequestOfCharge {
 public:
  // `descriptors`: the value of ChargeSource::descriptors.
  RequestOfCharge(const Request& request, std::uint32_t descriptors) : seen_(&request) {
    if (descriptors == 0) return;
    seen_ = &copy_.emplace(request);
    copy_->descriptor = &request.descriptors[static_cast<std::size_t>(std::countr_zero(descriptors))];
  }
  RequestOfCharge(const RequestOfCharge&) = delete;
  RequestOfCharge& operator=(const RequestOfCharge&) = delete;
  [[nodiscard]] const Request& operator*() const noexcept { return *seen_; }

 private:
  const Request* seen_;
  std::optional<Request> copy_;
};

// Returns true if the client uses https. Believes the X-Forwarded-Proto of a trusted peer, which may end TLS
// itself.
[[nodiscard]] bool is_https(const Request& request) noexcept;

}  // namespace weir::policy
